"""What a response is whose request nobody saw: layouts that its bytes fit, and how well."""
