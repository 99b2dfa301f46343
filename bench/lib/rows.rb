# frozen_string_literal: true

# The rows of the bench: each is a promise, how it is measured and what it must reach.
module Bench
  APPS = File.expand_path("../apps", __dir__)
  MAGTAG = File.expand_path("../../examples/magtag/config.ru", __dir__)

  # One contender of a row: what runs and what is put on it.
  Contender = Struct.new(:stack, :load, :kind, keyword_init: true)

  # What a row must reach. `figure` computes it from the cells of one round (`over: :median` of
  # all rounds, or the `:worst` of them) or from all rounds at once (`over: :pool`); nil means that
  # a cell it needs has failed.
  Check = Struct.new(:label, :bound, :goal, :over, :figure, keyword_init: true) do
    def at_most?
      bound.key?(:at_most)
    end

    def limit
      bound.values.first
    end

    def meets?(value, limit)
      at_most? ? value <= limit : value >= limit
    end
  end

  Row = Struct.new(:name, :title, :seconds, :contenders, :checks, :options, keyword_init: true)

  # Builds the list. The words of each title say what is fixed in it.
  class Rows
    def self.all
      new.build
    end

    def build
      @rows = []
      hello_rows
      tail_row
      connection_rows
      sinatra_row
      work_row
      mix_row
      stuck_rows
      idle_rows
      @rows
    end

    private

    def hello_rows
      [[1, 16], [1, 128], [1, 256], [2, 128]].each do |workers, connections|
        relaxed = connections == 16 || workers == 2
        load = Wrk.new(connections)
        row "hello-#{workers}w-#{connections}",
            "hello, keep-alive, #{count(workers, "worker")}, #{connections} connections",
            { oribi: on(:oribi, "hello", workers, load), hyper: on(:hyper, nil, 1, load),
              loop: call_loop("hello"), puma: on(:puma, "hello", workers, load),
              unicorn: on(:unicorn, "hello", workers, load) },
            [above_ceilings(relaxed ? 1.6 : 1.3), *(peer_checks(3.2, 2.6) if relaxed)]
      end
    end

    def above_ceilings(limit)
      Check.new(label: "CPU per request / (hyper + Ruby loop)", bound: { at_most: limit },
                goal: 1.1, over: :median,
                figure: lambda { |c|
                  ratio(c.dig(:oribi, :cpu_us), sum(c.dig(:hyper, :cpu_us), c.dig(:loop, :cpu_us)))
                })
    end

    def peer_checks(puma, unicorn)
      [["puma", puma], ["unicorn", unicorn]].map { |name, limit| per_cpu(name.to_sym, limit) }
    end

    def per_cpu(peer, limit, goal: nil, ours: :oribi)
      Check.new(label: "requests per server-CPU-second, #{ours} / #{peer}",
                bound: { at_least: limit }, goal: goal, over: :median,
                figure: ->(c) { ratio(c.dig(ours, :per_cpu), c.dig(peer, :per_cpu)) })
    end

    def tail_row
      load = Client.new(:closed, warm: true, connections: 256)
      tail = ->(c, name) { ratio(c.dig(name, :latency_us, :p99), c.dig(name, :latency_us, :p50)) }
      row "tail-256", "p99/p50 of hello, keep-alive, 1 worker, 256 connections",
          { oribi: on(:oribi, "hello", 1, load), hyper: on(:hyper, nil, 1, load) },
          [Check.new(label: "p99/p50, oribi / bare hyper", bound: { at_most: 1.5 }, over: :median,
                     figure: ->(c) { ratio(tail[c, :oribi], tail[c, :hyper]) })]
    end

    def connection_rows
      [16, 128, 500].each do |connections|
        close_row(connections)
        nginx_row(connections)
      end
    end

    def close_row(connections)
      load = Wrk.new(connections, close: true)
      row "close-#{connections}",
          "hello, a connection per request, 2 workers, #{connections} at a time",
          { oribi: on(:oribi, "hello", 2, load), unicorn: on(:unicorn, "hello", 2, load),
            hyper: on(:hyper, nil, 1, load) },
          [per_cpu(:unicorn, 1.0, goal: 1.5)]
    end

    def nginx_row(connections)
      load = Wrk.new(connections)
      row "nginx-#{connections}",
          "hello behind nginx by unix socket, 2 workers, #{connections} connections to nginx",
          { oribi: on(:oribi, "hello", 2, load, nginx: :close),
            unicorn: on(:unicorn, "hello", 2, load, nginx: :close),
            kept: on(:oribi, "hello", 2, load, nginx: :keepalive) },
          [per_cpu(:unicorn, 1.0, goal: 1.25), per_cpu(:unicorn, 1.0, goal: 1.5, ours: :kept)]
    end

    def sinatra_row
      load = Wrk.new(16)
      contenders = %i[oribi puma unicorn].to_h { |kind| [kind, on(kind, "sinatra", 2, load)] }
      row "sinatra", "Sinatra hello, keep-alive, 2 workers, 16 connections",
          contenders.merge(loop: call_loop("sinatra")),
          [per_cpu(:unicorn, 1.7), per_cpu(:puma, 2.2)]
    end

    def work_row
      load = Sampled.new(:closed, warm: true, connections: 8)
      pool = ->(rounds, name, part) { Numbers.pool(rounds.map { |c| c[name] })&.fetch(part) }
      row "ruby-5ms", "5 ms of Ruby, 2 workers, 8 connections, rounds pooled",
          %i[oribi unicorn].to_h { |kind| [kind, on(kind, "work", 2, load)] },
          [Check.new(label: "p99 / p50", bound: { at_most: 1.45 }, over: :pool,
                     figure: ->(r) { ratio(pool[r, :oribi, :p99], pool[r, :oribi, :p50]) }),
           Check.new(label: "p99, oribi / unicorn", bound: { at_most: 1.0 }, over: :pool,
                     figure: ->(r) { ratio(pool[r, :oribi, :p99], pool[r, :unicorn, :p99]) })],
          seconds: 10, pids: true
    end

    def mix_row
      load = Client.new(:mix, fast: "/10", slow: "/400", connections: 10, seed: 20, workers: 3)
      row "stuck-mix", "10 ms each, 1 of 20 is stuck 400 ms, 3 workers, 10 kept connections",
          %i[oribi unicorn puma].to_h { |kind| [kind, on(kind, "sleep", 3, load)] },
          [Check.new(label: "served / (workers / mean service time), every round",
                     bound: { at_least: 0.98 }, over: :worst,
                     figure: ->(c) { c.dig(:oribi, :served) }),
           Check.new(label: "p90 of fast requests, oribi / unicorn", bound: { at_most: 1.05 },
                     over: :median, figure: p_ratio(:p90, :oribi, :unicorn))],
          seconds: 20, pids: true
    end

    def stuck_rows
      stuck = Client.new(:stuck, fast: "/10", slow: "/2000", connections: 4, requests: 400)
      alone = Client.new(:closed, path: "/10", connections: 4)
      row "stuck-worker", "10 ms requests on 4 kept connections while one of 2 s runs, 2 workers",
          { oribi: on(:oribi, "sleep", 2, stuck), alone: on(:oribi, "sleep", 1, alone),
            puma: on(:puma, "sleep", 2, stuck), unicorn: on(:unicorn, "sleep", 2, stuck) },
          [Check.new(label: "p95 / p95 of one free worker", bound: { at_most: 1.2 },
                     over: :median, figure: p_ratio(:p95, :oribi, :alone))],
          pids: true
      open = Client.new(:open, fast: "/", slow: "/100", rate: 500, connections: 16)
      row "open-loop", "500 hello/s, constant rate, beside one 100 ms sleeper, 2 workers",
          %i[oribi puma unicorn].to_h { |kind| [kind, on(kind, "sleep", 2, open)] },
          [Check.new(label: "p99 in ms", bound: { at_most: 3.0 }, over: :median,
                     figure: ->(c) { c.dig(:oribi, :latency_us, :p99)&.fdiv(1_000) })],
          pids: true
    end

    def idle_rows
      one = Client.new(:closed, warm: true, connections: 1)
      row "one-connection", "hello, one connection, 1 worker, nothing else to do",
          %i[oribi puma].to_h { |kind| [kind, on(kind, "hello", 1, one)] },
          [Check.new(label: "p50, oribi / puma", bound: { at_most: 1.3 }, over: :median,
                     figure: p_ratio(:p50, :oribi, :puma))]
      row "memory", "memory of all processes (PSS) after hello, 2 workers",
          %i[oribi puma unicorn].to_h { |kind| [kind, on(kind, "hello", 2, Wrk.new(128))] },
          [Check.new(label: "MB", bound: { at_most: 45 }, over: :median,
                     figure: ->(c) { c.dig(:oribi, :pss_mb) })],
          memory: true
      row "start", "start to first answer of examples/magtag, 2 workers",
          %i[oribi puma].to_h { |kind| [kind, on(kind, MAGTAG, 2, nil, kind: :start)] },
          [Check.new(label: "oribi / puma", bound: { at_most: 1.3 }, over: :median,
                     figure: ->(c) { ratio(c.dig(:oribi, :start_ms), c.dig(:puma, :start_ms)) })]
    end

    def p_ratio(part, ours, theirs)
      ->(c) { ratio(c.dig(ours, :latency_us, part), c.dig(theirs, :latency_us, part)) }
    end

    def row(name, title, contenders, checks, seconds: 5, **options)
      @rows << Row.new(name: name, title: title, contenders: contenders, checks: checks,
                       seconds: seconds, options: options)
    end

    def on(server, app, workers, load, nginx: nil, kind: :load)
      app = "#{APPS}/#{app}.ru" if app && !app.start_with?("/")
      Contender.new(stack: Stack.new(kind: server, app: app, workers: workers, nginx: nginx),
                    load: load, kind: kind)
    end

    def call_loop(app)
      Contender.new(stack: Stack.new(kind: :loop, app: "#{APPS}/#{app}.ru"), kind: :loop)
    end

    def ratio(one, two)
      one && two && one.fdiv(two)
    end

    def sum(*parts)
      parts.all? ? parts.sum : nil
    end

    def count(number, word)
      number == 1 ? "1 #{word}" : "#{number} #{word}s"
    end
  end
end
