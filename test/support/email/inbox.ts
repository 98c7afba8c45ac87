/** An SMTP server in this process that accepts, refuses or stalls mails and records them. */
import type { AddressInfo } from "node:net"
import { Context, Effect, Layer } from "effect"
import { SMTPServer } from "smtp-server"

/** A received mail. Header names are lower-case. */
export interface ReceivedMail {
  readonly from: string
  readonly to: string
  readonly headers: ReadonlyMap<string, string>
  readonly text: string
  readonly html: string
  /** The link in the text part. */
  readonly link: string
  /** Parameters of the link's fragment. */
  readonly fragment: URLSearchParams
}

const decode = (part: string): string => {
  const [head = "", ...body] = part.split("\r\n\r\n")
  const text = body.join("\r\n\r\n")
  if (/transfer-encoding: base64/i.test(head)) return Buffer.from(text, "base64").toString("utf8")
  if (!/quoted-printable/i.test(head)) return text
  const bytes = text
    .replace(/=\r\n/g, "")
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, "latin1").toString("utf8")
}

const parse = (from: string, to: string, raw: string): ReceivedMail => {
  const [head = ""] = raw.split("\r\n\r\n", 1)
  const lines = head.replace(/\r\n[ \t]+/g, " ").split("\r\n")
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":")
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    })
  )
  const boundary = /boundary="?([^";]+)/.exec(headers.get("content-type") ?? "")?.[1] ?? "none"
  const parts = raw.split(`--${boundary}`)
  const partOf = (type: string) => decode(parts.find((part) => part.includes(type)) ?? "").trim()
  const text = partOf("Content-Type: text/plain")
  const html = partOf("Content-Type: text/html")
  const link = /\S+:\/\/\S+/.exec(text)?.[0] ?? ""
  const fragment = new URLSearchParams(link.slice(link.indexOf("#") + 1))
  return { from, to, headers, text, html, link, fragment }
}

/** Reply to a recipient: accept, none at all, permanent failure (550), temporary failure (450). */
type Policy = "accept" | "hold" | "refuse" | "postpone"

const refusals = { refuse: 550, postpone: 450 } as const

/** The recorded mails and delivery attempts, and the tests that wait for them. */
class InboxState {
  policy: Policy = "accept"
  readonly received: Array<ReceivedMail> = []
  /** Recipients of all delivery attempts. */
  readonly attempts: Array<string> = []
  readonly #waiting = new Set<() => void>()

  notify(): void {
    for (const check of Array.from(this.#waiting)) check()
  }

  /** Waits until `find` returns a value. */
  waitFor<A>(find: () => A | undefined): Effect.Effect<A> {
    return Effect.callback((resume) => {
      const check = () => {
        const found = find()
        if (found === undefined) return
        this.#waiting.delete(check)
        resume(Effect.succeed(found))
      }
      this.#waiting.add(check)
      check()
      return Effect.sync(() => this.#waiting.delete(check))
    })
  }
}

const serverOf = (state: InboxState): SMTPServer =>
  new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS", "AUTH"],
    closeTimeout: 100,
    onRcptTo: ({ address }, _, done) => {
      const { policy } = state
      state.attempts.push(address)
      state.notify()
      if (policy === "accept") return done()
      if (policy === "hold") return
      done(Object.assign(new Error(`<${address}>: no`), { responseCode: refusals[policy] }))
    },
    onData: (stream, { envelope }, done) => {
      const chunks: Array<Buffer> = []
      stream.on("data", (chunk: Buffer) => chunks.push(chunk))
      stream.on("end", () => {
        const raw = Buffer.concat(chunks).toString("utf8")
        const from = envelope.mailFrom === false ? "" : envelope.mailFrom.address
        for (const { address } of envelope.rcptTo) state.received.push(parse(from, address, raw))
        done()
        state.notify()
      })
    }
  })

const listen = (server: SMTPServer, port: number) =>
  new Promise<number>((resolve, reject) => {
    server.on("error", reject)
    const listening = server.listen(port, "127.0.0.1", () => {
      const { port: found }: Partial<AddressInfo> = Object(listening.address())
      resolve(found ?? 0)
    })
  })

const stop = (server: SMTPServer) =>
  new Promise<void>((resolve) => {
    server.close(() => resolve())
  })

const openInbox = async () => {
  const state = new InboxState()
  const { attempts, received } = state
  let server = serverOf(state)
  const port = await listen(server, 0)
  const countAttempts = (to: string) => attempts.filter((recipient) => recipient === to).length
  return {
    url: `smtp://127.0.0.1:${port}`,
    /** Waits for the next mail to an address and removes it. */
    next: (to: string) =>
      state.waitFor(() => {
        const index = received.findIndex((mail) => mail.to === to)
        return index < 0 ? undefined : received.splice(index, 1)[0]
      }),
    /** Waits for the nth delivery attempt to an address. */
    attempted: (to: string, times = 1) =>
      state.waitFor(() => (countAttempts(to) >= times ? true : undefined)),
    countAttempts,
    policy: (next: Policy) =>
      Effect.sync(() => {
        state.policy = next
      }),
    /** Stops listening. */
    close: Effect.promise(() => stop(server)),
    /** Listens again on the same port. */
    reopen: Effect.promise(async () => {
      server = serverOf(state)
      await listen(server, port)
    })
  }
}

/** The SMTP server of a test. */
export class Inbox extends Context.Service<Inbox, Awaited<ReturnType<typeof openInbox>>>()(
  "test/support/email/inbox/Inbox"
) {
  static readonly layer = Layer.effect(
    Inbox,
    Effect.acquireRelease(
      Effect.promise(() => openInbox()),
      ({ close }) => close
    )
  )
}
