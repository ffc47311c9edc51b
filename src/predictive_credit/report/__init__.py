"""One self-contained page from decided studies: no file is read here and no network is asked."""
