"""Two devices of the host, so that something can belong to another device."""

import os

os.environ.setdefault("GPUMEM_HOST_DEVICES", "2")
