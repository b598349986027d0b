# SPDX-License-Identifier: Apache-2.0
"""vLLM on CPUs generates from a tiny random Llama, whose layers are split over the ranks."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ["VLLM_CPU_KVCACHE_SPACE"] = "1"
os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"

import torch.distributed as dist
from report import report
from vllm import LLM, SamplingParams
from vllm.distributed import get_tp_group
from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator
from vllm.platforms import current_platform

CONFIGURATION = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 128,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "max_position_embeddings": 128,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def main() -> None:
    backend, world_size = sys.argv[1], int(sys.argv[2])
    current_platform.dist_backend = backend
    # Ranks of one host use shared memory of vLLM's own; these act as ranks of several hosts do.
    CpuCommunicator._all_group_ranks_share_shm_group_name = lambda _: False
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(CONFIGURATION))
        model = LLM(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            tensor_parallel_size=world_size,
            distributed_executor_backend="external_launcher",
            enforce_eager=True,
            dtype="float32",
            max_model_len=64,
            max_num_seqs=4,
            seed=3,
        )
        prompts = [{"prompt_token_ids": list(range(5, 5 + length))} for length in (3, 8)]
        settings = SamplingParams(temperature=0, max_tokens=8, logprobs=1, detokenize=False)
        done = [request.outputs[0] for request in model.generate(prompts, settings)]
    values = [token for output in done for token in output.token_ids]
    values += [
        entry[token].logprob
        for output in done
        for token, entry in zip(output.token_ids, output.logprobs, strict=True)
    ]
    group = get_tp_group().device_group
    report(dist.get_rank(), dist.get_world_size(group), dist.get_backend(group), values)


if __name__ == "__main__":
    main()
