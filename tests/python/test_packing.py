#!/usr/bin/env python3
"""Weights of 4 bits in panels: kernelgen.pack and unpack, operators with packed inputs, and what is refused."""

import unittest
import unittest.mock

from package_test import main, need

np = need("numpy")
import kernelgen
from kernelgen import packing

W4A16 = """op w4a16(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N]) -> (y: T[M, N])
param G = 32
where T in f32 f16
{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n]) * s[k/G, n]) }
"""


def draw(*shape):
    return np.random.default_rng(len(shape)).integers(0, 16, shape, dtype="u1")


def two_a_byte(codes):
    """Bytes of two codes: with the shape of the rows where these have whole bytes."""
    flat = np.append(codes.ravel(), np.zeros(codes.size % 2, "u1"))
    pairs = flat[::2] | flat[1::2] << 4
    return pairs if codes.shape[-1] % 2 else pairs.reshape(*codes.shape[:-1], -1)


def codes_of(pairs):
    return np.stack([pairs & 15, pairs >> 4], -1).reshape(*pairs.shape[:-1], -1)


def panels_of(codes):
    """By the formula of the layout, code by code."""
    *lead, rows, columns = codes.shape
    made = np.zeros((*lead, -(-rows // 64), -(-columns // 16), 1024), "u1")
    for k in range(rows):
        for n in range(columns):
            place = n % 16 // 2 * 128 + k % 8 // 2 * 32 + k % 64 // 16 * 8 + k % 2 * 4 + k % 16 // 8 * 2 + n % 2
            made[..., k // 64, n // 16, place] = codes[..., k, n]
    return two_a_byte(made)


class Packing(unittest.TestCase):
    def test_by_the_formula(self):
        for shape in ((64, 16), (65, 18), (130, 50), (3, 7, 4), (2, 2, 70, 34), (1, 2)):
            codes = draw(*shape)
            packed = kernelgen.pack(two_a_byte(codes))
            np.testing.assert_array_equal(packed, panels_of(codes))
            np.testing.assert_array_equal(kernelgen.unpack(packed, *shape[-2:]), two_a_byte(codes))

    def test_transposed(self):
        codes = draw(3, 66, 34)  # [.., N, K]
        packed = kernelgen.pack(two_a_byte(codes), transposed=True)
        np.testing.assert_array_equal(packed, panels_of(codes.swapaxes(1, 2)))
        np.testing.assert_array_equal(kernelgen.unpack(packed, 34, 66, transposed=True), two_a_byte(codes))
        rows = kernelgen.unpack(packed, 34, 66)
        np.testing.assert_array_equal(codes_of(rows), codes.swapaxes(1, 2))

    def test_odd_rows_share_bytes(self):
        for shape in ((65, 17), (3, 5, 3), (1, 1)):
            codes = draw(*shape)
            packed = kernelgen.pack(two_a_byte(codes), shape=shape)
            np.testing.assert_array_equal(packed, panels_of(codes))
            np.testing.assert_array_equal(kernelgen.unpack(packed, *shape[-2:]), two_a_byte(codes))

    def test_nothing(self):
        self.assertEqual(kernelgen.pack(np.empty((0, 8), "u1")).shape, (0, 1, 512))
        self.assertEqual(kernelgen.pack(np.empty((0, 64, 8), "u1")).shape, (0, 1, 1, 512))
        self.assertEqual(kernelgen.unpack(np.empty((0, 1, 512), "u1"), 0, 16).shape, (0, 8))

    def test_the_operators_that_gpus_run(self):
        given = packing._bytes_of

        def elsewhere(name, array):
            home, found = given(name, array)
            return home, found._replace(device="elsewhere")

        for shape in ((65, 18), (1, 65, 18), (2, 3, 64, 16), (65, 17)):
            for transposed in (False, True) if shape[-1] % 2 == 0 else (False,):
                pairs = two_a_byte(draw(*shape))
                rows, columns = reversed(shape[-2:]) if transposed else shape[-2:]
                expected = kernelgen.pack(pairs, transposed, shape=shape)
                with unittest.mock.patch.object(packing, "_bytes_of", elsewhere):
                    packed = kernelgen.pack(pairs, transposed, shape=shape)
                    back = kernelgen.unpack(packed, rows, columns, transposed)
                np.testing.assert_array_equal(packed, expected)
                np.testing.assert_array_equal(back, pairs)

    def test_the_shipped_operators(self):
        codes = draw(130, 34)
        packed = kernelgen.op("quantised.kg", "pack_weights")(two_a_byte(codes), K=130, N=34)
        np.testing.assert_array_equal(packed.reshape(3, 3, 512), panels_of(codes))
        back = kernelgen.op("quantised.kg", "unpack_weights")(panels_of(codes), K=130, N=34)
        np.testing.assert_array_equal(back, two_a_byte(codes).ravel())


class Operators(unittest.TestCase):
    def expected(self, x, codes, scales, zeros):
        groups = np.arange(codes.shape[0]) // 32
        return x @ ((codes.astype("f4") - zeros[groups]) * scales[groups])

    def test_sizes_follow_from_other_arguments(self):
        op = kernelgen.op(W4A16)
        for rows, columns in ((65, 18), (130, 34), (64, 16)):
            x = np.random.default_rng(1).standard_normal((3, rows), dtype="f4")
            codes, zeros = draw(rows, columns), draw(-(-rows // 32), columns)
            scales = np.random.default_rng(2).standard_normal(zeros.shape, dtype="f4")
            packed = kernelgen.pack(two_a_byte(codes))
            for _ in range(3):  # the first through Python, the others through C
                y = op(x, packed, scales, two_a_byte(zeros))
                np.testing.assert_allclose(y, self.expected(x, codes, scales, zeros), rtol=1e-4, atol=1e-3)

    def test_one_plan_for_all_shapes(self):
        op = kernelgen.op("op f(x: f32[K], w: packed u4[K, N], s: f32[N]) -> (y: f32[N])\n"
                          "{ y[n] = s[n] * sum(k) x[k] * w[k, n] }", dynamic=True)
        for rows, columns in ((65, 18), (200, 34), (1, 2)):
            codes = draw(rows, columns)
            y = op(np.ones(rows, "f4"), kernelgen.pack(two_a_byte(codes)), np.ones(columns, "f4"))
            np.testing.assert_array_equal(y, codes.sum(0))

    def test_experts(self):
        op = kernelgen.op("op f(x: f32[B, K], e: i32[B], w: packed u4[E, K, N]) -> (y: f32[B, N])\n"
                          "{ y[b, n] = sum(k) x[b, k] * w[e[b], k, n] }")
        codes = draw(3, 70, 18)
        packed = kernelgen.pack(two_a_byte(codes))
        y = op(np.ones((2, 70), "f4"), np.array([2, 0], "i4"), packed, E=3, N=18)
        np.testing.assert_array_equal(y, codes[[2, 0]].sum(1))

    def test_what_is_not_packed(self):
        op = kernelgen.op("op f(x: f32[K], w: packed u4[K, N], s: f32[N]) -> (y: f32[N])\n"
                          "{ y[n] = s[n] * sum(k) x[k] * w[k, n] }")
        x, codes, s = np.ones(64, "f4"), two_a_byte(draw(64, 256)), np.ones(256, "f4")
        with self.assertRaisesRegex(kernelgen.ShapeError, "w is packed: 3 dimensions, .*kernelgen.pack"):
            op(x, codes, s)  # as many bytes
        with self.assertRaisesRegex(kernelgen.ShapeError, 'dimension 0 of "w" is 4, but ceil.K/64. is 1'):
            op(x, kernelgen.pack(codes, transposed=True), s)
        with self.assertRaisesRegex(kernelgen.ShapeError, "no shape tells the size N: \"w\" is packed"):
            kernelgen.op("op g(x: f32[K], w: packed u4[K, N]) -> (y: f32[N])\n{ y[n] = sum(k) x[k] * w[k, n] }")(
                x, kernelgen.pack(codes))


class Refusals(unittest.TestCase):
    def test_arrays(self):
        with self.assertRaisesRegex(kernelgen.ArgumentError, "weights: it has elements of i8"):
            kernelgen.pack(np.zeros((64, 8), "i1"))
        with self.assertRaisesRegex(kernelgen.ArgumentError, "weights: packed elements must be contiguous"):
            kernelgen.pack(np.zeros((64, 16), "u1")[:, ::2])
        with self.assertRaisesRegex(kernelgen.ArgumentError, "tensors are those of NumPy"):
            kernelgen.pack([[1, 2]])

    def test_shapes(self):
        with self.assertRaisesRegex(kernelgen.ShapeError, "does not tell rows and columns: give shape="):
            kernelgen.pack(np.zeros(512, "u1"))
        with self.assertRaisesRegex(kernelgen.ShapeError, r"codes of the shape \[65, 17\] have 553"):
            kernelgen.pack(np.zeros(552, "u1"), shape=(65, 17))
        with self.assertRaisesRegex(kernelgen.ShapeError, "not that of matrices"):
            kernelgen.pack(np.zeros(8, "u1"), shape=(16,))
        packed = kernelgen.pack(np.zeros((64, 8), "u1"))
        with self.assertRaisesRegex(kernelgen.ShapeError, r"65 rows and 16 columns make \[..., 2, 1, 512\]"):
            kernelgen.unpack(packed, 65, 16)
        with self.assertRaisesRegex(kernelgen.ShapeError, r"\[1, 1, 256\]"):
            kernelgen.unpack(packed[..., :256].copy(), 64, 16)


main()
