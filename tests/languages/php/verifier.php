// Reads cases from standard input, a line each, and says of each whether the guide's code believes it.
while (($line = fgets(STDIN)) !== false) {
    [$secret, $id, $timestamp, $signature, $body] = explode("\t", rtrim($line, "\n"));
    $headers = ['webhook-id' => $id, 'webhook-timestamp' => $timestamp, 'webhook-signature' => $signature];
    echo isGenuine($secret, $headers, hex2bin($body)) ? "true\n" : "false\n";
}
