# Definitions, right and wrong.
cat >good.kg <<'KG'
# Scales rows.
op scale(x: T[P, D], s: T[P]) -> (y: T[P, D]) where T in f16 f32
{ y[p, d] = x[p, d] * s[p] }
goal { verify P D = 3 5 }
KG
cat >two.kg <<'KG'
op one(x: f32[N]) -> (y: f32[N]) { y[n] = x[n] + 1 }
op two(x: f32[N]) -> (y: f32[N]) { y[n] = x[n] + 2 }
KG
cat >name.kg <<'KG'
op wrong(bias: f32[N]) -> (y: f32[N])
{
    y[n] = relu(bais[n])
}
KG
cat >call.kg <<'KG'
op wrong(x: f32[N]) -> (y: f32[N]) { y[n] = rleu(x[n]) }
KG
printf 'op \000\377 garbage' >bytes.kg
kernelgen check two.kg; echo "exit $?"
kernelgen check two.kg --op tow; echo "exit $?"
kernelgen check name.kg; echo "exit $?"
kernelgen check call.kg; echo "exit $?"
kernelgen check bytes.kg >/dev/null 2>&1; echo "exit $?"
kernelgen check good.kg --size P=4,D=-1; echo "exit $?"
kernelgen check good.kg --size Q=4; echo "exit $?"
kernelgen check good.kg --dtype T=f64; echo "exit $?"
kernelgen check good.kg --dtype T=f13; echo "exit $?"
kernelgen check two.kg --op one 2>&1 >/dev/null; echo "exit $?"
kernelgen check good.kg | head -n 1; echo "exit $?"
kernelgen check good.kg --lang zh | head -n 1
kernelgen check good.kg --lang fr; echo "exit $?"
kernelgen check good.kg --json >good.json && echo "json of $(head -c 1 good.json)"
