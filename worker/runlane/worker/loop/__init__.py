"""The loop of model and tools. It knows neither Redis nor arq nor a clock."""
