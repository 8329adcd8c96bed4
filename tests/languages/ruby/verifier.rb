# Reads cases from standard input, a line each, and says of each whether the guide's code believes it.
$stdin.each_line(chomp: true) do |line|
  secret, id, timestamp, signature, body = line.split("\t")
  headers = { "webhook-id" => id, "webhook-timestamp" => timestamp, "webhook-signature" => signature }
  puts genuine?(secret, headers, [body].pack("H*"))
end
