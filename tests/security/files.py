"""Lists the tests elsewhere that are about security: with this folder, what `make test-security` runs.

`SECURITY.md` says which threat each of them shows to be met.
"""

ELSEWHERE = (
    # what is refused before anything is done
    "api/test_corpus.py",
    "api/test_bad_input.py",
    "api/test_framing.py",
    "api/test_headers.py",
    "rules/test_address.py",
    "rules/test_destination.py",
    "rules/test_own_address.py",
    "rules/test_redirect.py",
    "validate/test_endpoint_fields.py",
    "store/test_database_url.py",
    "test_config.py",
    # who may do what
    "api/test_access.py",
    "api/test_guesses.py",
    "api/test_keys_api.py",
    "api/test_portal_links.py",
    "api/test_secrets_api.py",
    "admin/test_key_cache.py",
    "rules/test_auth_throttle.py",
    "rules/test_scopes.py",
    "dashboard/test_walls.py",
    "dashboard/test_visits.py",
    # secrets and signatures
    "crypto/test_sealing.py",
    "crypto/test_signing.py",
    "pipeline/catalogue/test_sealing.py",
    "pipeline/catalogue/test_rotation.py",
    "cli/test_secrets.py",
    "cli/test_log_lines.py",
    "receiver_kit/test_verify.py",
    "pipeline/test_client_certificates.py",
    # who changed what
    "contract/test_audit.py",
    "api/test_audit_api.py",
    # receivers that mean harm
    "pipeline/test_corpus_receivers.py",
    "pipeline/test_wall.py",
    "pipeline/sending/test_sender_answers.py",
    "pipeline/sending/test_sender_deadlines.py",
    "pipeline/sending/test_sender_dialling.py",
    "pipeline/sending/test_sender_certificates.py",
    "pipeline/sending/test_sender_proxy.py",
    "pipeline/test_egress_proxy.py",
    "dashboard/test_hostile_answer.py",
    "dashboard/test_bad_receivers.py",
    # pages with hostile content, in a browser
    "browser/test_hostile_pages.py",
    "browser/test_harness.py",
    # what the code may not do
    "test_architecture.py",
)
