"""What you read and rebuild, in this order: recurrent (lesson 01), attention (02, 03, 04), memory_network (02),
positions (05), transformer (06), gpt (06), translator (07), bert (08), retrieval and lora (10)."""
