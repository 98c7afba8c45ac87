/**
 * A mail server for tests, a real one in this process: it takes mails, refuses them or lets those who
 * send wait, and says what came.
 */
import type { AddressInfo } from "node:net"
import { Context, Effect, Layer } from "effect"
import { SMTPServer } from "smtp-server"

/** A mail as it came: header fields by their name in lower case, and the parts. */
export interface ReceivedMail {
  readonly from: string
  readonly to: string
  readonly headers: ReadonlyMap<string, string>
  readonly text: string
  readonly html: string
  /** The link of the text. */
  readonly link: string
  /** What stands in the link's fragment, by its names. */
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

/** What the server does with a recipient: takes it, answers nothing, never will take it, not now. */
type Policy = "accept" | "hold" | "refuse" | "postpone"

const refusals = { refuse: 550, postpone: 450 } as const

/** What has happened, and who waits for something to happen. */
class Record {
  policy: Policy = "accept"
  readonly received: Array<ReceivedMail> = []
  /** Everybody to whom somebody wanted to send. */
  readonly asked: Array<string> = []
  readonly #waiting = new Set<() => void>()

  tell(): void {
    for (const look of Array.from(this.#waiting)) look()
  }

  /** Waits until `find` has something. */
  until<A>(find: () => A | undefined): Effect.Effect<A> {
    return Effect.callback((resume) => {
      const look = () => {
        const found = find()
        if (found === undefined) return
        this.#waiting.delete(look)
        resume(Effect.succeed(found))
      }
      this.#waiting.add(look)
      look()
      return Effect.sync(() => this.#waiting.delete(look))
    })
  }
}

const serverOf = (record: Record): SMTPServer =>
  new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS", "AUTH"],
    closeTimeout: 100,
    onRcptTo: ({ address }, _, done) => {
      const { policy } = record
      record.asked.push(address)
      record.tell()
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
        for (const { address } of envelope.rcptTo) record.received.push(parse(from, address, raw))
        done()
        record.tell()
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
  const record = new Record()
  const { asked, received } = record
  let server = serverOf(record)
  const port = await listen(server, 0)
  const countAsked = (to: string) => asked.filter((it) => it === to).length
  return {
    url: `smtp://127.0.0.1:${port}`,
    /** The next mail to an address; each is given once. */
    next: (to: string) =>
      record.until(() => {
        const index = received.findIndex((mail) => mail.to === to)
        return index < 0 ? undefined : received.splice(index, 1)[0]
      }),
    /** Waits until somebody wants to send to an address for the nth time. */
    asked: (to: string, times = 1) =>
      record.until(() => (countAsked(to) >= times ? true : undefined)),
    countAsked,
    policy: (next: Policy) =>
      Effect.sync(() => {
        record.policy = next
      }),
    /** Nobody listens any more. */
    close: Effect.promise(() => stop(server)),
    /** Somebody listens again, at the same port. */
    reopen: Effect.promise(async () => {
      server = serverOf(record)
      await listen(server, port)
    })
  }
}

/** The mail server of a test. */
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
