"""stub"""
class CudaKernel:
    pass
