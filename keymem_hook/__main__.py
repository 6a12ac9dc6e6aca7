"""`python -m keymem_hook`: the same as the command `keymem-hook`."""

from keymem_hook import main

main()
