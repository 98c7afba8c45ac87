/**
 * What tests of sign-in with an email stand on: a node that sends its mails to a real SMTP server in
 * this process, a project with `emailLogin`, and requests of its players.
 */
import type { AddressInfo } from "node:net"
import { Context, Effect, Layer } from "effect"
import { SMTPServer } from "smtp-server"
import { at, guest, request } from "#src/testing/players"
import { addressOfNode, configure, makeTenants, nodeWith, SharedDatabase } from "../http/stack.ts"
import type { Tenant } from "../http/stack.ts"

/** A mail as it came: header fields by their name in lower case, and the parts. */
export interface ReceivedMail {
  readonly from: string
  readonly to: string
  readonly raw: string
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
  return { from, to, raw, headers, text, html, link, fragment }
}

/** A mail server for tests: what it does with a recipient is the test's to say. */
export class Inbox extends Context.Service<Inbox, Awaited<ReturnType<typeof openInbox>>>()(
  "test/email/Inbox"
) {
  static readonly layer = Layer.effect(
    Inbox,
    Effect.acquireRelease(
      Effect.promise(() => openInbox()),
      ({ close }) => close
    )
  )
}

const openInbox = async () => {
  const received: Array<ReceivedMail> = []
  const waiting = new Set<() => void>()
  const asked: Array<string> = []
  let policy: "accept" | "hold" | "refuse" | "postpone" = "accept"
  const tell = () => {
    for (const look of Array.from(waiting)) look()
  }
  const refusal = (responseCode: number, to: string) =>
    Object.assign(new Error(`<${to}>: not now`), { responseCode })
  const make = () =>
    new SMTPServer({
      authOptional: true,
      disabledCommands: ["STARTTLS", "AUTH"],
      closeTimeout: 100,
      onRcptTo: ({ address }, _, done) => {
        asked.push(address)
        tell()
        if (policy === "hold") return
        if (policy === "refuse") return done(refusal(550, address))
        if (policy === "postpone") return done(refusal(450, address))
        done()
      },
      onData: (stream, { envelope }, done) => {
        const chunks: Array<Buffer> = []
        stream.on("data", (chunk: Buffer) => chunks.push(chunk))
        stream.on("end", () => {
          const raw = Buffer.concat(chunks).toString("utf8")
          const from = envelope.mailFrom === false ? "" : envelope.mailFrom.address
          for (const { address } of envelope.rcptTo) received.push(parse(from, address, raw))
          done()
          tell()
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
  let server = make()
  const port = await listen(server, 0)

  /** Waits until `find` has something. */
  const until = <A>(find: () => A | undefined): Effect.Effect<A> =>
    Effect.callback((resume) => {
      const look = () => {
        const found = find()
        if (found === undefined) return
        waiting.delete(look)
        resume(Effect.succeed(found))
      }
      waiting.add(look)
      look()
      return Effect.sync(() => waiting.delete(look))
    })

  return {
    url: `smtp://127.0.0.1:${port}`,
    /** The next mail to an address; each is given once. */
    next: (to: string) =>
      until(() => {
        const index = received.findIndex((mail) => mail.to === to)
        return index < 0 ? undefined : received.splice(index, 1)[0]
      }),
    /** Waits until somebody wants to send to an address for the nth time. */
    asked: (to: string, times = 1) =>
      until(() => (asked.filter((it) => it === to).length >= times ? true : undefined)),
    countAsked: (to: string) => asked.filter((it) => it === to).length,
    policy: (next: typeof policy) =>
      Effect.sync(() => {
        policy = next
      }),
    /** Nobody listens any more. */
    close: Effect.promise(() => stop(server)),
    /** Somebody listens again, at the same port. */
    reopen: Effect.promise(async () => {
      server = make()
      await listen(server, port)
    })
  }
}

/** A node that sends to the inbox. */
export const nodeOfInbox = (env: Readonly<Record<string, string>> = {}) =>
  Layer.unwrap(Effect.map(Inbox, ({ url }) => nodeWith({ SMTP_URL: url, ...env })))

/** The same with its own inbox and database. */
export const NodeLive = (env: Readonly<Record<string, string>> = {}) =>
  nodeOfInbox(env).pipe(Layer.provideMerge(Layer.mergeAll(Inbox.layer, SharedDatabase.layer)))

export const password = "correct horse battery"

/** A config with sign-in by email, and a page that links may lead to. */
export const withEmail = {
  version: 1,
  features: { emailLogin: true },
  auth: { redirectUrls: ["https://game.example.com/*"] }
}

interface Signed {
  readonly accessToken: string
}

/** An environment with what its players may ask of it. */
export const callsOf = (url: string, tenant: Tenant) => {
  const post = (path: string, body: unknown, player?: Signed, extra: object = {}) =>
    request(`${url}/v1/auth/${path}`, {
      headers: {
        "x-svc-key": tenant.publishableKey,
        ...(player === undefined ? {} : { authorization: `Bearer ${player.accessToken}` }),
        ...extra
      },
      body
    })
  const me = (player: Signed) =>
    request(`${url}/v1/players/me`, {
      headers: {
        "x-svc-key": tenant.publishableKey,
        authorization: `Bearer ${player.accessToken}`
      }
    })
  /** A new player with an address, signed in. */
  const signUp = (email: string, more: object = {}) =>
    Effect.map(post("email/signup", { email, password, ...more }), (answer) => {
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
      return {
        id: String(at(answer.body, "player", "id")),
        accessToken: String(at(answer.body, "accessToken")),
        refreshToken: String(at(answer.body, "refreshToken"))
      }
    })
  const logIn = (email: string, given = password) => post("email/login", { email, password: given })
  const ban = (playerId: string) =>
    request(`${url}/v1/admin/players/${playerId}/ban`, {
      headers: { "x-svc-key": tenant.secretKey },
      body: { reason: "test" }
    })
  const newGuest = guest({ url, ...tenant })
  return { ...tenant, url, ban, guest: newGuest, logIn, me, post, signUp }
}

/** A new project with sign-in by email in both environments, at the node of this context. */
export const makeWorld = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production, projectId } = yield* makeTenants
  yield* configure(development, withEmail)
  yield* configure(production, withEmail)
  return { ...callsOf(url, development), production: callsOf(url, production), projectId }
})

export const codeOf = (answer: { readonly body: unknown }) => at(answer.body, "error", "code")
