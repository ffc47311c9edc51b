"""The thin shell: one module per stage of dvc.yaml. Each reads, calls the core, writes, prints one line."""
