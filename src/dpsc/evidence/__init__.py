"""Evidence on made-up data: attacks on our mechanisms, and the paper's experiments run again."""
