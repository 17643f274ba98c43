"""Who may call: users and roles, keys and scopes, secrets at rest, the audit trail."""
