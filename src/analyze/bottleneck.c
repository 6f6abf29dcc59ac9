// The table of bottlenecks, and of the kinds of change.

#include "analyze/bottleneck.h"

const char *const kg_change_keys[KG_CHANGE_COUNT] = {
    [KG_CHANGE_NONE] = "none",   [KG_CHANGE_BLOCK] = "block",   [KG_CHANGE_ACCESS] = "access",
    [KG_CHANGE_REUSE] = "reuse", [KG_CHANGE_STAGES] = "stages", [KG_CHANGE_GROUPING] = "grouping",
    [KG_CHANGE_FORM] = "form",
};

const char *const kg_change_names[KG_CHANGE_COUNT][2] = {
    [KG_CHANGE_NONE] = {"none", "无"},
    [KG_CHANGE_BLOCK] = {"block and grid", "分块与网格"},
    [KG_CHANGE_ACCESS] = {"vector width and memory access", "向量宽度与访存方式"},
    [KG_CHANGE_REUSE] = {"data reuse", "数据复用"},
    [KG_CHANGE_STAGES] = {"threads, stages and registers", "线程、流水级与寄存器"},
    [KG_CHANGE_GROUPING] = {"grouping into kernels", "内核融合方式"},
    [KG_CHANGE_FORM] = {"form of kernel", "内核形式"},
};

const struct kg_bottleneck_row kg_bottlenecks[KG_BOTTLENECK_COUNT] = {
    [KG_BOTTLENECK_NONE] =
        {
            .key = "none",
            .name = {"none (at the roofline)", "无（已达 Roofline）"},
            .symptom = {{"time near the roofline", "实测时间接近 Roofline 下限"},
                        {"time near the roofline", "实测时间接近 Roofline 下限"}},
            .advice = {{"none: a goal that is still missed cannot be met",
                        "无：若仍未达标，则目标本身不可达"},
                       {"none: a goal that is still missed cannot be met",
                        "无：若仍未达标，则目标本身不可达"}},
        },
    [KG_BOTTLENECK_LAUNCH] =
        {
            .key = "launch",
            .name = {"launch overhead", "启动开销"},
            .symptom = {{"time does not shrink with the shape", "形状变小而时间不变"},
                        {"time does not shrink with the shape: threads are woken for every kernel",
                         "形状变小而时间不变：每个内核都要唤醒线程"}},
            .advice = {{"fewer kernels, replay as a graph", "减少内核数量，以图方式重放"},
                       {"fewer kernels, fewer threads", "减少内核数量，减少线程数"}},
            .changes = {KG_CHANGE_GROUPING, KG_CHANGE_BLOCK},
        },
    [KG_BOTTLENECK_PARALLELISM] =
        {
            .key = "parallelism",
            .name = {"parallelism", "并行度"},
            .symptom = {{"fewer blocks than units", "线程块少于计算单元"},
                        {"cores without work", "有核心空闲"}},
            .advice = {{"smaller blocks, or a split reduction", "减小块大小，或切分归约维"},
                       {"smaller blocks, or a split reduction", "减小块大小，或切分归约维"}},
            .changes = {KG_CHANGE_BLOCK, KG_CHANGE_REUSE, KG_CHANGE_FORM, KG_CHANGE_STAGES},
        },
    [KG_BOTTLENECK_TAIL] =
        {
            .key = "tail",
            .name = {"tail", "尾部不均"},
            .symptom = {{"a last wave nearly empty", "末尾波次很空"},
                        {"cores that wait for the last one", "各核心等待最后一个核心"}},
            .advice = {{"block sizes whose grid fills whole waves",
                        "选择使网格填满整数个波次的块大小"},
                       {"smaller blocks, shared evenly", "减小块大小并均匀分配"}},
            .changes = {KG_CHANGE_BLOCK, KG_CHANGE_STAGES, KG_CHANGE_REUSE},
        },
    [KG_BOTTLENECK_SPILLS] =
        {
            .key = "spills",
            .name = {"register spills", "寄存器溢出"},
            .symptom = {{"spills in a loop of the assembly", "汇编的循环中出现寄存器溢出"},
                        {"spills in the main loop", "主循环中出现寄存器溢出"}},
            .advice = {{"smaller tiles, less unrolling, another register limit",
                        "减小分块，减少展开，调整寄存器上限"},
                       {"smaller tiles, less unrolling", "减小分块，减少展开"}},
            .changes = {KG_CHANGE_STAGES, KG_CHANGE_REUSE, KG_CHANGE_ACCESS},
        },
    [KG_BOTTLENECK_LOCALITY] =
        {
            .key = "locality",
            .name = {"cache locality", "缓存局部性"},
            .symptom = {{"bytes moved well above the compulsory ones",
                         "实际传输量远大于必需数据量"},
                        {"bytes moved well above the compulsory ones, or many misses of the last "
                         "cache",
                         "实际传输量远大于必需数据量，或末级缓存命中率低"}},
            .advice = {{"larger tiles, blocks ordered in groups, statements fused into one kernel",
                        "增大分块，按组重排线程块次序，将各语句融合为一个内核"},
                       {"larger tiles, another order of loops, statements fused into one kernel",
                        "增大分块，调整循环次序，将各语句融合为一个内核"}},
            .changes = {KG_CHANGE_REUSE, KG_CHANGE_GROUPING, KG_CHANGE_BLOCK, KG_CHANGE_FORM},
        },
    [KG_BOTTLENECK_BANDWIDTH] =
        {
            .key = "bandwidth",
            .name = {"memory bandwidth", "内存带宽"},
            .symptom = {{"memory busy, time still above the roofline",
                         "内存繁忙，而时间仍高于 Roofline 下限"},
                        {"memory busy, time still above the roofline",
                         "内存繁忙，而时间仍高于 Roofline 下限"}},
            .advice = {{"streaming loads and stores, data that stays on chip",
                        "流式读写，使数据留在片上"},
                       {"streaming stores, rows that stay in a cache",
                        "流式写入，使行数据留在缓存中"}},
            .changes = {KG_CHANGE_ACCESS, KG_CHANGE_REUSE, KG_CHANGE_GROUPING},
        },
    [KG_BOTTLENECK_LATENCY] =
        {
            .key = "latency",
            .name = {"latency", "访存延迟"},
            .symptom = {{"compulsory bytes / time well below the bandwidth: narrow accesses, or "
                         "too few loads in flight",
                         "必需字节数 / 时间 远低于内存带宽：访问过窄，或在途加载不足"},
                        {"compulsory bytes / time well below the bandwidth: narrow accesses, or "
                         "too few loads in flight",
                         "必需字节数 / 时间 远低于内存带宽：访问过窄，或在途加载不足"}},
            .advice = {{"wider vectors, more rows a block, more stages",
                        "加宽向量访问，增加每块行数，增加流水级数"},
                       {"wider vectors, several rows at a time, prefetching",
                        "加宽向量访问，同时处理多行，预取数据"}},
            .changes = {KG_CHANGE_ACCESS, KG_CHANGE_STAGES, KG_CHANGE_BLOCK, KG_CHANGE_FORM},
        },
    [KG_BOTTLENECK_TENSOR] =
        {
            .key = "tensor",
            .name = {"tensor pipe", "张量核流水线"},
            .symptom = {{"matrix instructions busy, or none in the assembly",
                         "矩阵指令繁忙，或汇编中没有矩阵指令"}},
            .advice = {{"tile sizes that are multiples of 16, staged operands, another form of "
                        "matrix instruction",
                        "分块取 16 的倍数，操作数经共享内存分级加载，换用其他矩阵指令形式"}},
            .changes = {KG_CHANGE_REUSE, KG_CHANGE_STAGES, KG_CHANGE_FORM, KG_CHANGE_BLOCK},
        },
    [KG_BOTTLENECK_SPECIAL] =
        {
            .key = "special",
            .name = {"special functions", "特殊函数"},
            .symptom = {{"arithmetic units busy with transcendental calls, memory idle",
                         "计算单元忙于超越函数，内存空闲"},
                        {"arithmetic busy with transcendental calls, memory idle",
                         "运算忙于超越函数，内存空闲"}},
            .advice = {{"fewer calls by algebra, rows kept on chip so that none is repeated",
                        "通过代数变换减少调用，行数据留在片上避免重复计算"},
                       {"fewer calls by algebra, rows kept in a cache so that none is repeated, "
                        "calls of whole vectors",
                        "通过代数变换减少调用，行数据留在缓存中避免重复计算，按整向量调用"}},
            .changes = {KG_CHANGE_REUSE, KG_CHANGE_ACCESS, KG_CHANGE_FORM, KG_CHANGE_GROUPING},
        },
    [KG_BOTTLENECK_ARITHMETIC] =
        {
            .key = "arithmetic",
            .name = {"arithmetic", "算术吞吐"},
            .symptom = {{"issue slots or arithmetic pipes busy, memory idle",
                         "发射槽或算术流水线繁忙，内存空闲"},
                        {"arithmetic busy, or few multiply-adds of full vectors in the main loop",
                         "运算繁忙，或主循环中整向量乘加指令过少"}},
            .advice = {{"wider vectors, less address arithmetic, larger register tiles",
                        "加宽向量访问，减少地址计算，增大寄存器分块"},
                       {"tiles of whole vectors, packed operands", "分块取整数个向量，打包操作数"}},
            .changes = {KG_CHANGE_REUSE, KG_CHANGE_ACCESS, KG_CHANGE_STAGES, KG_CHANGE_FORM},
        },
};
