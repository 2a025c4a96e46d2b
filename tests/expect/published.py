"""What healthy cards and machines have reached, as published or measured by us: TFLOP/s (INT8:
TOP/s) and GB/s.

A sample, by which the rules of floors, ceilings and architectures are tried: a new sheet needs no
entry here.
"""

from __future__ import annotations

# The best figures that were published of each model, in squares of 8192 or the best shape of a
# search, by PyTorch, CUTLASS or DCGM; and copies inside the memory, read and write counted.
CARDS: dict[str, dict[str, float]] = {
    "A10": {"f32": 8.1},
    "A100 PCIe 40GB": {"f32": 17.6, "tf32": 108.0, "f16": 241.0, "bf16": 234.0, "copy": 1293.0},
    "A100 PCIe 80GB": {"f32": 17.95, "bf16": 253.0, "copy": 1495.0},
    "A100 SXM4 40GB": {"f32": 18.35, "tf32": 128.2, "f16": 280.4, "bf16": 265.9},
    "A100 SXM4 80GB": {"f32": 19.2, "tf32": 127.4, "f16": 259.0, "bf16": 271.0, "copy": 1610.0},
    "A30": {"f32": 9.4, "copy": 780.0},
    "A40": {"f32": 19.0, "copy": 565.0},
    "B200 SXM 180GB": {"f32": 66.2, "f16": 1628.0, "bf16": 1745.0, "f8": 3432.0, "copy": 5430.0},
    "B300 SXM6 288GB": {"f32": 49.1, "bf16": 1769.0, "f8": 3353.0, "copy": 6160.0},
    "GB200 186GB": {"tf32": 790.0, "bf16": 1822.0, "f8": 3616.0, "copy": 3470.0},
    "GeForce RTX 2080 Ti": {"f32": 13.0, "f16": 58.6},
    "GeForce RTX 3090 Ti": {"tf32": 42.0, "f16": 81.0},
    "GeForce RTX 3090": {"f32": 24.8, "f16": 75.6, "bf16": 76.6},
    "GeForce RTX 4090": {"f32": 54.0, "tf32": 86.0, "f16": 168.0, "bf16": 167.0, "copy": 916.0},
    "GeForce RTX 5090": {"f32": 67.0, "tf32": 122.0, "f16": 230.0, "bf16": 232.0, "copy": 1535.0},
    "GH200 96GB": {"f32": 50.0, "tf32": 363.0, "bf16": 828.6, "f8": 1535.0, "copy": 2840.0},
    "H100 NVL 94GB": {"f32": 34.1, "copy": 2725.0},
    "H100 PCIe 80GB": {"f32": 37.0, "tf32": 240.0, "f16": 458.0, "bf16": 496.0, "copy": 1639.0},
    "H100 SXM5 80GB": {
        "f32": 51.9,
        "tf32": 402.0,
        "f16": 760.0,
        "bf16": 795.0,
        "f8": 1403.0,
        "copy": 2900.0,
    },
    "H20 96GB": {"f32": 32.0, "tf32": 71.8, "f16": 142.0, "bf16": 142.0, "copy": 2010.0},
    "H200 NVL 141GB": {"f32": 43.0, "copy": 2950.0},
    "H200 SXM 141GB": {"f32": 51.3, "f16": 759.0, "bf16": 794.0, "f8": 1453.0, "copy": 4010.0},
    "L4": {"f32": 15.4, "tf32": 31.9, "f16": 69.0, "bf16": 71.0},
    "L40": {"f32": 40.2},
    "L40S": {"f32": 46.9, "f16": 264.0, "bf16": 269.0},
    "RTX A6000": {"f32": 23.9, "tf32": 60.0, "f16": 120.0, "bf16": 123.0},
    "RTX PRO 6000 Blackwell Max-Q": {"f32": 52.4, "copy": 1530.0},
    "RTX PRO 6000 Blackwell Server": {"f32": 77.0, "f16": 313.0, "bf16": 409.0, "copy": 1480.0},
    "RTX PRO 6000 Blackwell Workstation": {"f32": 77.2, "f16": 315.5, "bf16": 418.0},
    "T4": {"f32": 4.3, "f16": 42.5, "copy": 244.0},
    "V100 PCIe 16GB": {"copy": 731.0},
    "V100 PCIe 32GB": {"copy": 731.0},
    "V100 SXM2 16GB": {"f32": 14.1, "f16": 94.8},
    "V100 SXM2 32GB": {"copy": 810.0},
}
# More of them, the lower ends of what was published: from cool, or without saying for how long.
MORE: tuple[tuple[str, str, float], ...] = (
    ("A100 PCIe 40GB", "tf32", 106.0),  # gpu-fryer
    ("A100 PCIe 40GB", "bf16", 224.0),
    ("A100 SXM4 40GB", "f64", 18.95),  # SuperBench
    ("A100 SXM4 40GB", "i8", 473.1),
    ("A100 SXM4 80GB", "bf16", 261.0),
    ("A100 SXM4 80GB", "f16", 253.7),  # Azure, 8192 x 8192, random
    ("A100 SXM4 80GB", "i8", 466.6),
    ("GeForce RTX 3090 Ti", "f16", 81.314),  # 2 x RTX 3090 Ti with a bridge
    ("GeForce RTX 3090 Ti", "tf32", 42.056),
    ("GeForce RTX 4090", "f16", 156.083),  # 2 x RTX 4090, 8192 x 8192
    ("GeForce RTX 4090", "bf16", 160.0),
    ("GeForce RTX 4090", "f32", 49.005),  # 2 x RTX 4090, the least of 2048 to 16384
    ("GeForce RTX 5090", "f16", 221.0),
    ("GeForce RTX 5090", "bf16", 222.0),
    ("GeForce RTX 5090", "f32", 64.0),
    ("H100 SXM5 80GB", "f8", 1290.0),  # Azure
    ("H200 SXM 141GB", "bf16", 814.0),  # 1 x H200 in a VM
    ("H200 SXM 141GB", "f8", 1301.0),  # Azure
    ("H200 SXM 141GB", "copy", 4299.0),  # 1 x H200 in a VM
    ("GeForce RTX 3090 Ti", "copy", 883.27),  # 2 x RTX 3090 Ti with a bridge
    ("GeForce RTX 4090", "copy", 911.08),  # 2 x RTX 4090
    ("T4", "f32", 4.2),
    ("T4", "f16", 42.0),
)
# Hot, at the power cap, in squares of 8192.
SUSTAINED: tuple[tuple[str, str, float], ...] = (
    ("H200 SXM 141GB", "f64", 53.6),  # 1 x H200 in a VM
    ("H200 SXM 141GB", "f32", 51.2),
    ("H200 SXM 141GB", "tf32", 344.0),
    ("H200 SXM 141GB", "f16", 637.0),
    ("H200 SXM 141GB", "bf16", 664.0),
    ("H200 SXM 141GB", "f8", 1213.0),
    ("H200 SXM 141GB", "i8", 869.0),
    ("B200 SXM 180GB", "bf16", 1178.0),
    ("B200 SXM 180GB", "f8", 2051.0),
    ("GH200 96GB", "bf16", 705.0),  # gpu-fryer
    ("H100 SXM5 80GB", "bf16", 730.0),
    ("H100 SXM5 80GB", "tf32", 373.0),
    ("V100 SXM2 16GB", "f64", 6.311),  # gpu-burn
)
