# Host functions that launch are written without any compiler and GPU, for CUDA alone.
export CC=/nonexistent/cc KERNELGEN_NVRTC=/nonexistent/libnvrtc.so
softmax="$OPS/softmax.kg --op softmax_first --device sm_90a --target cuda"
kernelgen emit $softmax --launcher --size P=65,D=1024 >softmax.cu; echo "exit $?"
sed -n '/^\/\/ Compile: nvcc/,/^\/\/ Compile: NVRTC/p' softmax.cu
sed -n '/^extern "C" size_t/,/^    if (kg_is_multiple/p' softmax.cu
echo "--- products, with tensor maps, for one GPU only"
kernelgen emit "$OPS/matmul.kg" --op matmul --device sm_90a --target cuda --launcher >matmul.cu
grep -c 'compiled for another GPU' matmul.cu
sed -n '/^    if (kg_is_multiple(a/,/kg_map_0)/p' matmul.cu
echo "--- without it, the comments say what a program has to do"
kernelgen emit $softmax --size P=65,D=1024 | sed -n '/^\/\/ Launch/,/^$/p' | head -14
kernelgen emit "$OPS/bias_relu.kg" --target host --launcher; echo "host: exit $?"
kernelgen emit "$OPS/bias_relu.kg" --target ptx --launcher; echo "ptx: exit $?"
