"""Where the Gram matrix of a donor pool is summed: exact integers, the same wherever and in whatever order."""
