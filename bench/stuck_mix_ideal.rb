# frozen_string_literal: true

# What the stuck mix comes to with an ideal queue: ten clients in a closed loop, three servers,
# first come, first served, nothing lost between requests. Prints the fast requests' percentiles in
# ms for some lengths of a fast request, overheads included: `ruby bench/stuck_mix_ideal.rb`.

SERVERS = 3
CLIENTS = 10
SLOW = 400.1
SECONDS = 400

# One request of each shuffled block of 20 is stuck, as the load client draws it.
def lengths(fast)
  random = Random.new(20)
  Enumerator.new do |list|
    loop { [SLOW, *[fast] * 19].shuffle(random: random).each { |length| list << length } }
  end
end

def latencies(fast)
  draw = lengths(fast)
  free_at = [0.0] * SERVERS
  asked_at = [0.0] * CLIENTS
  seen = []
  while (asked = asked_at.min) < SECONDS * 1000
    length = draw.next
    server = free_at.index(free_at.min)
    done = [asked, free_at[server]].max + length
    free_at[server] = done
    asked_at[asked_at.index(asked)] = done
    seen << (done - asked) if length == fast
  end
  seen.sort
end

[10.0, 10.1, 10.3, 10.6].each do |fast|
  sorted = latencies(fast)
  parts = [0.5, 0.9, 0.95, 0.99].map { |part| format("%.1f", sorted[(sorted.size * part).to_i]) }
  puts "fast request of #{fast} ms: p50 p90 p95 p99 = #{parts.join(' ')} ms"
end
