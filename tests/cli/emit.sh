# Source is written without any compiler; what compilers make of it is not.
export CC=/nonexistent/cc KERNELGEN_NVRTC=/nonexistent/libnvrtc.so
softmax="$OPS/softmax.kg --op softmax"
kernelgen emit $softmax --target cuda --device sm_90a >softmax.cu; echo "cuda: exit $?"
grep -c 'extern "C" __global__' softmax.cu
kernelgen emit "$OPS/attention.kg" --op attention_decode --target cuda --device sm_90a >decode.cu
echo "cuda: exit $?"
grep -c '^// Choice:' decode.cu
kernelgen emit "$OPS/bias_relu.kg" --target host >bias_relu.c; echo "host: exit $?"
grep -c '^int bias_relu(' bias_relu.c
kernelgen emit $softmax --target ptx --device sm_90a; echo "ptx: exit $?"
find "$KERNELGEN_HOME" -name '*.cubin' -o -name '*.so' | wc -l
