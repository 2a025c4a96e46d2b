"""What each format needs: the lines that a pass may do without and why, and the numbers that
decide.

Every pattern here was looked at; a line that matches none of its tool's is needed.
"""

from __future__ import annotations

# Lines without which the readings are the same: banners, talk, and what other lines say as well.
NOT_NEEDED: dict[str, tuple[str, ...]] = {
    "gpu-burn": (
        # One of many snapshots: counts go on in the next, and the table at the end has the
        # verdict.
        r"^\d+\.\d%\s+proc'd:",
        r"^\s*Summary at:",
        (
            r"^(?:Using compare file|Burning for|Run length|GPU \d+: "
            r"(?:NVIDIA|Tesla|TITAN|GeForce)|Initialized device|Uninitted cublas)"
        ),
        r"^(?:Killing processes|Freed memory|done$|\$ )",
        # Without it the length of the ring follows from the products.
        r"^Results are \d+ bytes each",
    ),
    "stress-ng": (
        r"\(secs\)",  # the units under the head of the table
        # each says what the others say
        r"(?:debug|info): +\[\d+\] (?:skipped: 0|passed: |failed: 0|metrics untrustworthy: 0)",
        # with --times, `for a 2.01s run time` is as good an end
        r"\[7187\] successful run completed",
        r"for a \d+\.\d+s run time|(?:CPU|user|system|total) time|load average",  # of --times
        r"note: |^\$ |stressor +bogo-ops-per-second|miscellaneous metrics|<--- \(",
        # Of versions without the level metrc, some print it and some do not; proof.proven holds
        # the run against the clock.
        r"\[811\] setting to a ",
        (
            r"metrc: \[\d+\] (?!stressor +bogo ops)[a-z-]+ .*(?:harmonic|geometric) mean|metrc: "
            r"\[\d+\] (?:matrix|vm) +[\d.]+ +[a-z]"
        ),
    ),
    "stressapptest": (
        (
            r"^(?:Log: (?!Commandline)|Stats: (?:SAT revision|(?:File|Net) Copy|Data "
            r"Check|Invert Data|Disk))"
        ),
        r"^\$ ",
    ),
    # A log has no line that must come, and no end: that none is lost, sequence numbers say
    # (observe/kmsg.py), not the text.
    "kernel-log": (r".",),
    "p2pBandwidthLatencyTest": (
        r"^Device=\d+ CAN(?:NOT)? Access Peer",  # the matrix says the same
        r"^\[P2P|^\*\*\*NOTE|^So you can see|^NOTE:",
        r"^Device: 0, NVIDIA H200",  # of one GPU the list is whole with it or without it
    ),
    "nvbandwidth": (
        r"^nvbandwidth Version|^(?:CUDA|Driver|Built|NOTE|Performance|MPI)|^(?:node17|vm)$",
        r'^"(?:CUDA|Driver|git_version|version)|^done |^"GPU Device list" : null',
        r"^COEFFICIENT_OF_VARIATION|^Waived:",
        r"^Device 0: NVIDIA H200 \(00000000:00",  # of one GPU, as above
        r"^Running \w+\.$",  # where its SUM names it
        # of the only matrix in the text: versions without sums are read too
        r"^SUM \w+ [\d.]+$",
    ),
    "fio": (
        # the options, as they were given, and when it ran
        r'^"[a-z_]+" : "[^"]*",$',
        r'^"(?:timestamp|timestamp_ms|groupid|eta|elapsed)" : \d+,$',
        # of these, the other latencies and the flushes have lines too
        r'^"(?:min|max|mean|stddev|N|total_ios)" : [\d.]+,$',
        # each says what the others say
        r'^"(?:io_kbytes|bw_bytes|total_err|first_error|job_runtime)" : \d+,$',
        r'^"(?:bw|iops)_(?:min|max|agg|mean|dev|stddev|samples)" : [\d.]+,$',
        r'^"(?:usr_cpu|sys_cpu|ctx|majf|minf|(?:>=)?\d+|latency_[a-z]+)" : [\d.]+,$',
        r'^"(?:(?:read|write)_(?:merges|ticks)|in_queue)" : \d+,$',
        # the usual text, beside a JSON
        r"^(?:fio-3|Starting |read: |READ: |Run status|Disk stats|vda: )",
        r"^(?:slat|clat|lat|bw|iops|cpu|IO depths|submit|complete|issued|latency) .*[:=]",
        r"^\| +\d+\.\d+th=",
    ),
    "deviceQuery": (
        (
            r"^\S*deviceQuery Starting|^CUDA Device Query|^MapSMtoCores|^> Peer access|^< "
            r"|^Compute Mode:|^\$ |^NOTE|^deviceQuery, "
        ),
        (
            r"^(?:Total (?:amount of (?:shared|constant)|shared|number)|Warp size|Max(?:imum)? "
            r"|Concurrent|Run time|Support|Alignment)"
        ),
        r"^Integrated GPU",
        r"^(?:Texture alignment|Device supports|Device has Unified|\(\d+\)|\([ \d,]+\))",
        # see LOST
        (
            r"^\d+ CUDA|^Maximum|^Memory (?:Clock|Bus)|^L2 Cache|^GPU (?:Max )?Clock|^CUDA "
            r"Driver Version|^Device has ECC"
        ),
    ),
    "bandwidthTest": (
        (
            r"CUDA Bandwidth Test\] - Starting|^Running on|^(?:Quick|Shmoo|Range) Mode|^NOTE|^\$ "
            r"|^!!!!!Cumulative|^\.+$"
        ),
        # of --mode=shmoo, all sizes but the last: see the assertion of equal readings
        r"^\d+\s+\d+\.\d$",
    ),
    "topo-m": (
        (
            r"^(?:\$ |Legend:|NIC Legend:|NIC\d+: |X +=|(?:SYS|SOC|NODE|PHB|PXB|PIX|PSB|NV#) "
            r"+=|CPU Affinity = )"
        ),
    ),
    "topo-p2p": (r"^(?:\$ |Legend:|(?:X|OK|CNS|GNS|TNS|NS|DR|U) +=)",),
    "nccl-log": (
        (
            r"INFO (?:cudaDriverVersion|NET/Socket|Using network|Bootstrap timings|Init timings"
            r"|P2P Chunksize|threadThresholds|\d coll channels|\[Proxy|comm \w+ rank \d nRanks)"
        ),
        r"- Destroy COMPLETE$",
        # each process says the same
        r"INFO (?:NCCL version|P2P is disabled|NCCL_P2P_LEVEL)",
        # what a ring has connected already; see LOST
        r"INFO Channel 00(?:/1)? : ",
    ),
    "nccl-tests": (
        r"^# (?:nccl-tests version|Collective test|Using devices|\(B\)|out-of-place)|^#$",
        r"NCCL INFO",
        # what stands under the names of the columns
        r"^#\s+(?:out-of-place|\(B\))",
    ),
    "smartctl": (
        r'^(?:7,|4|"version"|"temperature": 35,|"value": 0,)$',
        # smartctl derives it from the critical warning and says both.
        r'^"passed": true$',
    ),
    "dmidecode": (
        (
            r"^# dmidecode|^Getting SMBIOS|^SMBIOS \d|^Physical Memory Array$|^Memory "
            r"Device$|^Location:"
        ),
        r"^Form Factor:",
    ),
} | dict.fromkeys(
    ("cpu_gemm", "memory_bandwidth", "gpu_copy", "gpu_gemm", "burn", "vram"),
    (r'^\{"(?:note|progress)": ',),
)

# Lines whose loss takes readings with it and alters none: what is absent is unset, and fails where
# it is due.
LOST: dict[str, tuple[str, ...]] = {
    # Each is printed by some versions, or where the driver tells it; two devices that differ in
    # them are refused.
    "deviceQuery": (
        (
            r"^(?:CUDA Driver Version|GPU (?:Max )?Clock|Memory Clock|Memory Bus|L2 Cache|Device "
            r"has ECC)"
        ),
    ),
    # A run of --csv or of several runs has no head that says what will come.
    "bandwidthTest": (r"^bandwidthTest-[HD]2[HD]", r"CUDA Bandwidth Test\] - Starting"),
    # What a disk does not offer is absent; the critical warning says by itself when the spare runs
    # out.
    "smartctl": (
        r'^"(?:passed|available_spare|available_spare_threshold|percentage_used|power_on_hours|current|hours)":',
    ),
    # Of a machine with several modules, one that lacks a line of the others is refused; with one
    # module nothing tells.
    "dmidecode": (
        (
            r"^(?:Total Width|Data Width|Form Factor|Bank Locator|Speed|Manufacturer|Serial "
            r"Number|Part Number|Configured Memory Speed):"
        ),
    ),
    # A percentile that was not asked for is absent.
    "fio": (r'^"\d+\.\d+" : \d+,$',),
    # A pair that no ring has, and what only one line says.
    "nccl-log": (r"INFO Channel 00(?:/1)? : ", r"INFO NVLS multicast", r" Bytes -> Algo "),
    # An event that is cut is not told, one that is doubled is told twice.
    "kernel-log": (r"NVRM: Xid",),
}

# Texts whose last section nothing announces: what comes before it is a whole text of its own. What
# is due and absent fails.
UNSEEN_END = frozenset({"nvbandwidth", "p2pBandwidthLatencyTest", "bandwidthTest", "kernel-log"})

# Lines that are counted: twice there, they are two.
COUNTED: dict[str, tuple[str, ...]] = {"kernel-log": (r"NVRM: Xid",)}

# Readings of gpu-burn over all its progress lines, and by which share of themselves they may move
# when one is lost.
MOVES = {"gpu_burn_rate": 0.02, "gpu_burn_temperature": 0.1, "gpu_burn_compares": 0.5}

_BAD = ("nan", "inf", "-inf", "1e999", "9" * 400, "-1.00", "1,5")
_COUNT = ("1", "12", "-1", "NaN", "1e999", "9" * 30)
_FLOAT = ("NaN", "Infinity", "-Infinity", "1e999", '"5"', "true", "null", "[1]", "9" * 400)

# (tool, pattern whose first group is the number or word, what stands there instead, whether a pass
# may carry it as a reading)
ALTERED: tuple[tuple[str, str, tuple[str, ...], bool], ...] = (
    ("gpu-burn", r"errors: (0)", _COUNT, False),
    ("gpu-burn", r"errors: 0 [-/] (0)", _COUNT, False),
    ("gpu-burn", r"GPU \d+: (OK)", ("FAULTY", "UNKNOWN", ""), False),
    ("gpu-burn", r"Tested (\d+) GPU", ("0", "16", "-1", "nan"), False),
    ("gpu-burn", r"proc'd: (\d+)", ("-1", "nan", "1e999"), False),
    ("gpu-burn", r"\((\d+) Gflop/s\)", ("-5", "nan", "inf", "1,5", "9" * 400), False),
    ("stress-ng", r"failed: (0)", _COUNT[:2], False),
    ("stress-ng", r"skipped: (0)", _COUNT[:2], False),
    ("stress-ng", r"untrustworthy: (0)", _COUNT[:2], False),
    ("stress-ng", r"passed: (\d+)", ("0", "63", "9" * 400), False),
    ("stress-ng", r"\] (successful) run", ("unsuccessful",), False),
    (
        "stress-ng",
        r"run completed in (\S+)",
        ("0.10s", "nans", "infs", "-3.00s", "1e999s", "1,5s"),
        False,
    ),
    ("stress-ng", r"\] (?:cpu|matrix|vm) +(\d+) ", ("0", *_BAD), False),
    ("stress-ng", r"\] (?:cpu|matrix|vm) +\d+ +(\d+\.\d+)", ("0.00", *_BAD), False),
    ("stressapptest", r"with (0) hardware incidents", _COUNT, False),
    ("stressapptest", r"incidents, (0) errors", _COUNT, False),
    ("stressapptest", r"Found (0) hardware", _COUNT, False),
    ("stressapptest", r"Status: (PASS)", ("FAIL", "MAYBE", ""), False),
    ("stressapptest", r"Memory Copy: \S+ at (\d+\.\d+)", ("0.00", *_BAD), False),
    ("stressapptest", r" in (\d+\.\d+)s ", ("1.00", *_BAD), False),
    ("fio", r'"error" : (0)', ("5", "28", "84", "-5", "NaN", "null", '"0"', "1e999"), False),
    ("fio", r'"(?:short|drop)_ios" : (0)', ("1", "-1", "NaN", "null", "0.5"), False),
    ("fio", r'"io_bytes" : ([1-9]\d+)', ("0", "67108865000", *_FLOAT, "-1"), False),
    ("fio", r'"(?:bw_bytes|bw|iops)" : ([1-9][\d.]+)', ("0", "7", *_FLOAT, "-1"), False),
    ("fio", r'"runtime" : ([1-9]\d*),', ("0", "1", *_FLOAT, "-1"), False),
    ("fio", r'"total_ios" : ([1-9]\d*)', ("0", "1", *_FLOAT, "-1"), False),
    ("fio", r'"clat_ns" : \{\s+"min" : ([1-9]\d+)', (*_FLOAT, "-1", "9" * 15), False),
    ("fio", r'"99.900000" : ([1-9]\d+)', ("0", "1", *_FLOAT, "-1", "9" * 15), False),
    ("fio", r'"util" : ([\d.]+)', ("-1", "1000", *_FLOAT), False),
    ("fio", r'"fio version" : "(fio-3.33)"', ("fio-2.99", "fio-3.0", "fio-4.1", "", "3.33"), False),
    ("deviceQuery", r"Result = (PASS)", ("FAIL", "PAS", ""), False),
    ("deviceQuery", r"Detected (\d+) CUDA", ("0", "9", "-1", "nan"), False),
    ("deviceQuery", r"NumDevs = (\d+)", ("0", "9", "-1", "nan"), False),
    ("deviceQuery", r"MBytes \((\d+) bytes", ("0", "1", *_BAD), False),
    ("deviceQuery", r"\( ?(\d+)\) Multiprocessors", ("0", "1", *_BAD), False),
    ("bandwidthTest", r"\n\s*\d{6,}\s+(\d+\.\d)", ("0.0", *_BAD[:4], *_BAD[5:]), False),
    ("bandwidthTest", r"Bandwidth = (\d+\.\d)", ("0.0", *_BAD[:4], *_BAD[5:]), False),
    ("bandwidthTest", r"Bandwidth = (\d+\.\d)", ("0.1",), True),
    ("bandwidthTest", r"Result = (PASS)", ("FAIL", "PAS", ""), False),
    ("p2pBandwidthLatencyTest", r" (\d+\.\d\d) ", ("0.00", *_BAD), False),
    ("p2pBandwidthLatencyTest", r" (\d+\.\d\d) ", ("0.01",), True),
    ("p2pBandwidthLatencyTest", r"D\\D     0     1\s+0\s+1\s+([01])", ("2", "-1", "nan"), False),
    ("nvbandwidth", r"\n +0 +(\d+\.\d\d)", ("0.00", "1.00", *_BAD), False),
    ("nvbandwidth", r"SUM \w+ (\d+\.\d\d)", ("0.00", "1.00", *_BAD), False),
    (
        "nvbandwidth",
        r'"sum" : (\d+\.?\d*)',
        ("0", "1.5", "NaN", "Infinity", "1e999", "true", '"x"'),
        False,
    ),
    ("nvbandwidth", r'"status" : "(Passed)"', ("Failed", "Error", "", "Running"), False),
    ("nvbandwidth", r'\[\s*"(\d+\.\d+)"', ("0", "1", "nan", "inf", "1e999", "-1", "1,5"), False),
    ("topo-m", r"GPU0\s+X\s+(\w+)", ("N/A", "NV0", "NV-1", "ERR", "OK", "PIX"), False),
    ("topo-p2p", r"\tX\t(\w+)", ("U", "ERR", "NV4"), False),
    ("topo-p2p", r"\tX\t(OK)", ("DR",), True),
    ("nccl-log", r"via (SHM)/", ("P2P", "NET", "QUIC", ""), False),
    ("nccl-log", r"via (P2P/CUMEM)", ("SHM/direct/direct", "P2P/", "P2P/CUDA"), False),
    ("nccl-log", r"via (NET)/", ("SHM", "P2P", ""), False),
    ("nccl-log", r"busId (\w+) commId \S+ - Init", ("12345", "14000", "ff008", "xyz"), False),
    ("nccl-log", r"nvmlDev (\d)", ("7", "-1", "9" * 400), False),
    ("nccl-log", r"nranks (\d) cudaDev .* - Init", ("1", "3", "99", "9" * 400), False),
    ("nccl-log", r"commId (\w+)", ("0x1", "0", "c4cf3e318640a470"), False),
    # another order of the same ranks leaves every way as it was: the log has one for each path
    ("nccl-log", r"Channel \d\d/02 : (0 1 2 3)", ("0 1 2", "0 1 2 2", "-1"), False),
    ("nccl-tests", r"sum .*\s(0)\n", ("1", "-1", "nan", "1e999", "0.5", "N/A", "x"), False),
    ("nccl-tests", r"sum +-1 +\S+ +\S+ +\S+ +(0) ", ("1", "12", "-1", "nan", "N/A"), False),
    ("nccl-tests", r"(0e\+00)", ("3e+01", "-1", "nan", "N/A", "x"), False),
    ("nccl-tests", r"values : (0) OK", ("1", "-1", "nan", "", "9" * 400), False),
    ("nccl-tests", r"values : 0 (OK)", ("FAILED", "MAYBE", ""), False),
    ("nccl-tests", r"bandwidth    : (\S+)", ("nan", "-1", "1e999", "x", ""), False),
    ("nccl-tests", r"validation: (1)", ("0", "-1", "x", ""), False),
    ("nccl-tests", r"maxBytes (\d+)", ("8", "0", "-1", "9" * 19, "9" * 400), False),
    ("nccl-tests", r"Rank +(\d)", ("7", "-1", "x"), False),
    ("nccl-tests", r"\n +(\d+) .*sum", ("-1", "nan", "9" * 400, "1.5"), False),
    ("nccl-tests", r"134217728 .* (180\.00) +0 ", ("nan", "-1", "1e999", "0.00", "x"), False),
    ("nccl-tests", r"134217728 .* (180\.00) +0 ", ("17.00",), True),
    ("smartctl", r'"passed": (true)', ("false", '"yes"', "1"), False),
    (
        "smartctl",
        r'"(?:critical_warning|media_errors)": (0)',
        ("1", "4", "-1", "NaN", "1e999", "null", '"0"'),
        False,
    ),
    ("smartctl", r'"exit_status": (0)', ("1", "2", "4", "64", "-1", "null"), False),
    ("smartctl", r'"available_spare": (100)', ("9", "-1", "NaN"), False),
    (
        "smartctl",
        r'(?:Pending_Sector|Offline_Uncorrectable)"[^}]*"string": "(0)',
        ("1", "12", "-1", "nan"),
        False,
    ),
    ("smartctl", r'"when_failed": "()"', ("now",), False),
    ("dmidecode", r"Number Of Devices: (\d)", ("3", "-1", "nan", ""), False),
    ("dmidecode", r"Size: (64 GB)", ("-64 GB", "nan GB", "64", "64,5 GB"), False),
    ("dmidecode", r"Size: (64 GB)", ("No Module Installed", "32 GB", "0 GB", "Unknown"), True),
    ("dmidecode", r"Speed: (4800 MT/s)", ("-1 MT/s", "nan MT/s", "4,8 GT/s"), False),
    ("dmidecode", r"Speed: (4800 MT/s)", ("3600 MT/s", "Unknown"), True),
    *(
        (load, r'"value": ([\d.]+)', _FLOAT, False)
        for load in ("cpu_gemm", "gpu_copy", "gpu_gemm", "burn", "vram")
    ),
    *((load, r'"value": (0.0)', ("1", "12", "-1"), True) for load in ("cpu_gemm", "gpu_gemm")),
    *(
        (load, r'miscompares"[^}]*"value": (0.0)', ("1", "12"), True)
        for load in ("burn", "gpu_copy", "vram")
    ),
    *((load, r'"value": ([\d.]+)', ("-1",), False) for load in ("burn", "gpu_copy", "vram")),
    *(
        (load, r'"readings": (\d+)', ("0", "1", "99", "-1", "null", "1e999"), False)
        for load in ("cpu_gemm", "gpu_copy", "gpu_gemm", "burn")
    ),
    *(
        (load, r'"seconds": ([\d.]+)', ("1", "0", "NaN", "null"), False)
        for load in ("cpu_gemm", "gpu_copy", "vram")
    ),
    ("memory_bandwidth", r'"value": ([\d.]+)', _FLOAT, False),
    ("burn", r'"laps": (2)', ("1", "3", "0", "-1", "true", "2.5", "9" * 18), False),
    ("burn", r'"(0123456789abcdef)"', ("nan", "0123456789ABCDEF", ""), False),
    ("gpu_copy", r"\[(65536), ", ("65537", "0", "-1", '"x"', "NaN"), False),
    ("vram", r'\["own_address", (2)', ("0", "-1", '"2"', "NaN"), False),
    ("vram", r"4000.0, (0\.0)\]", ("1", "-1", '"x"'), False),
)
