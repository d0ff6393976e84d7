"""Where jobs run: the contract that every scheduler fulfils, the schedulers, the Runner and the journal."""
