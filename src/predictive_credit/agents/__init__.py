"""Who writes explanations: the playbook or a model. Each sees the public state and nothing else."""
