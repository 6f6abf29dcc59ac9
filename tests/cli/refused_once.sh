# Right kernels that were refused once, and one that was wrong: f64 narrowed before it was divided.
cat >ops.kg <<'KG'
op mean_of_f64(x: f64[A, B]) -> (y: f32[A])
{ y[i] = mean(j) x[i, j] }

op large_strided(x: f8e4m3[A, B]) -> (y: i64[A, A, B])
{
    best[j] = argmax(i) x[i, j]
    y[i, k, j] = best[j]
}
goal { verify A B = 64 63 }

op products_of_f64(x: f64[A, B]) -> (y: f32[A])
{ y[i] = pow(abs(cast(f32, sum(j) x[i, j] * min(pad(x[j, i], 0.5), 1))) + 0.5, 1.5) }

op extremes_of_f64(x: f64[A, B], z: f16[B, A]) -> (y: f16[A, B])
{
    m[i] = mean(j) x[i, j]
    y[i, j] = z[j, i] + erf(min(m[i], z[j, i]))
}

op product_of_f64(x: f64[A, B]) -> (y: f64[])
{ y[] = prod(j) (1 + 0.125 * tanh(sum(i) (x[i, j] + pad(x[i, j - 1], 0)))) }
KG
for op in mean_of_f64 large_strided products_of_f64 extremes_of_f64 product_of_f64; do
    for seed in 1 2 3; do
        kernelgen verify ops.kg --op $op --size A=17,B=13 --seed $seed >out 2>&1 ||
            { echo "$op, seed $seed:"; cat out; }
    done
    echo "$op"
done
