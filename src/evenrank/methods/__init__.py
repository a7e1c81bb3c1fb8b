"""The methods: what each is, how a sweep runs it, and how its model file is read."""
