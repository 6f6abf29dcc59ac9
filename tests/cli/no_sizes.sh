# Definitions without a goal, and no sizes given: every command chooses the same ones, and says so.
ops='softmax matmul conv2d w4a16 attention embedding max_pool2d pad_last group_norm route_top1 cumsum
    dot transpose concatenate_last diagonal kl_divergence adamw one_hot conv1d_causal swiglu'
for name in $ops; do
    file=$(grep -l "^op $name(" "$OPS"/*.kg)
    awk '/^goal/ { skips = 1 } !skips { print } skips && /}/ { skips = 0 }' "$file" >plain.kg
    echo "$name: $(kernelgen check plain.kg --op "$name" 2>&1 >document | sed 's/.*given://')"
    grep -q '^op' document || echo "no document"
    case $name in # compiling and judging takes seconds
        softmax | matmul | embedding | cumsum | dot | one_hot) verify='verify --effort 0.1 --rigor estimate' ;;
        *) verify='check' ;;
    esac
    for command in "$verify" 'explain --rigor estimate' 'emit --target host'; do
        kernelgen $command plain.kg --op "$name" >out 2>notes || { echo "$command failed"; cat notes; }
        grep -q "sizes chosen for op $name" notes || echo "$command does not say its sizes"
    done
done

echo '--- every command'
echo 'op scale(x: f32[P, D], s: f32[D]) -> (y: f32[P, D]) { y[p, d] = x[p, d] * s[d] }' >scale.kg
for command in 'build --time 1 --out bundle' 'bench --time 1' 'profile --time 1'; do
    kernelgen $command scale.kg >out 2>notes
    case $? in 0 | 4) ;; *) echo "$command failed"; cat notes ;; esac # 4: slower than the goal
    grep -o 'sizes chosen.*' notes
done
kernelgen check scale.kg --size P=100 2>&1 >document | grep -o 'sizes chosen.*'
kernelgen check scale.kg --size P=100 --json 2>&1 >document | grep -o 'sizes chosen.*'

echo '--- none that the definition allows'
echo 'op odd(x: f32[N, M]) -> (y: f32[N - M, M - N]) { y[i, j] = x[i, j] }' >odd.kg
kernelgen check odd.kg
echo "exit $?"
