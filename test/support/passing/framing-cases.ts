/** Runs the framings over all methods and ways to a function, and finds what went wrong. */
import { hash } from "node:crypto"
import { Effect } from "effect"
import type { TestPlayer } from "#testing/players"
import { responsesIn, Wire, type WireResponse } from "../http/wire.ts"
import type { Framing } from "./framings.ts"
import { framings, smuggled } from "./framings.ts"
import type { Way } from "./recorded-function.ts"
import type { Fetched, Recorded } from "./recorder.ts"

export interface FramingCase {
  /** Name of the case's call, which no other has. */
  readonly call: string
  readonly method: string
  readonly framing: Framing
  readonly way: Way
  /** Whether the request of another caller follows on the same connection. */
  readonly isPipelined: boolean
  /** Whether the function answers before it reads the body. */
  readonly isEarly: boolean
}

export const methods = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "PROPFIND",
  "TRACE",
  "CONNECT"
] as const

/** Methods whose requests have a body that HTTP gives no meaning, so that the service may refuse it. */
const isBodiless = (method: string): boolean => /^(?:GET|HEAD|TRACE|CONNECT)$/.test(method)

/**
 * Returns the cases of one way. Each variant turns the wheel further: another end of the connection,
 * another moment of the answer, another forged call as the body.
 */
export const casesOf = (way: Way, variant: number): ReadonlyArray<FramingCase> =>
  framings.flatMap((make, row) =>
    methods.flatMap((method, column) => {
      const turn = row + column + variant
      const call = `${way.name.replaceAll(/\W/g, "")}-${variant}-${row}-${column}`
      const inner = smuggled[turn % smuggled.length]?.(`smuggled-${call}`) ?? ""
      const framing = make(inner)
      if (framing.method !== undefined && framing.method !== method) return []
      const isPipelined = (turn & 1) === 0
      return [{ call, method, framing, way, isPipelined, isEarly: (turn & 2) === 0 }]
    })
  )

interface Request {
  readonly method: string
  readonly path: string
  readonly player: TestPlayer
}

const bytesOf = (
  { host, path: root }: Way,
  { method, path, player }: Request,
  {
    body,
    eol = "\r\n",
    lines,
    version = "HTTP/1.1"
  }: Pick<Framing, "body" | "lines"> & Partial<Framing>
): string => {
  const target = method === "CONNECT" ? "victim.example:80" : `${root}${path}`
  const head = [
    `${method} ${target} ${version}`,
    `Host: ${host}`,
    `Authorization: Bearer ${player.accessToken}`,
    ...lines,
    "",
    ""
  ]
  return head.join(eol) + body
}

const bare = { lines: [], body: "" }
const waitMillis = 30_000

/** What a case's clients have received. */
interface Outcome {
  readonly responses: ReadonlyArray<WireResponse>
  readonly bystander: WireResponse | undefined
  readonly hung: string | undefined
}

type Players = readonly [TestPlayer, TestPlayer, TestPlayer]

const runOne = async (one: FramingCase, players: Players): Promise<Outcome> => {
  const { call, framing, isEarly, isPipelined, method, way } = one
  const [caller, follower, other] = players
  const wire = new Wire(way.url)
  const path = `/${isEarly ? "early" : "read"}/${call}`
  wire.send(bytesOf(way, { method, path, player: caller }, framing))
  const following = { method: "POST", path: `/read/${call}-following`, player: follower }
  if (isPipelined) wire.send(bytesOf(way, following, { lines: ["Content-Length: 2"], body: "ok" }))
  const read = () => responsesIn(wire.received, [method])
  const expected = framing.isIncomplete === true ? 0 : isPipelined ? 2 : 1
  const answered = await wire.until(
    () => read().filter(({ isWhole }) => isWhole).length >= expected,
    waitMillis
  )
  const ended = await wire.end(waitMillis)
  wire.socket.destroy()
  const bystanding = new Wire(way.url)
  const innocent = { method: "GET", path: `/read/${call}-bystander`, player: other }
  bystanding.send(bytesOf(way, innocent, bare))
  const served = await bystanding.until(
    () => responsesIn(bystanding.received, ["GET"]).some(({ isWhole }) => isWhole),
    waitMillis
  )
  bystanding.socket.destroy()
  const hung = !answered
    ? "the client waits in vain for a response"
    : !ended
      ? "the connection stays open"
      : served
        ? undefined
        : "the next caller waits in vain"
  return {
    responses: read(),
    bystander: responsesIn(bystanding.received, ["GET"])[0],
    hung
  }
}

export interface Finished extends FramingCase, Outcome {}

/** Cases that hang until the others of their way are left out, since each takes half a minute. */
const hungMax = 3

export const runCases = (
  cases: ReadonlyArray<FramingCase>,
  players: Players
): Effect.Effect<ReadonlyArray<Finished>> =>
  Effect.promise(async () => {
    const finished: Array<Finished> = []
    let hung = 0
    for (const one of cases) {
      const outcome = await runOne(one, players)
      finished.push({ ...one, ...outcome })
      if (outcome.hung !== undefined) hung += 1
      if (hung === hungMax) break
    }
    return finished
  })

const callOf = ({ url }: Fetched): string => new URL(url).pathname.split("/").at(-1) ?? ""

/** Returns what the function says in a response: in its headers, or in its body alone if it refuses a handshake. */
const said = ({ body, headers }: WireResponse, name: "x-call" | "x-player"): string | undefined =>
  headers.get(name) ?? new RegExp(`"${name}":"([^"]*)"`).exec(body)?.[1]

const isOf = (response: WireResponse, call: string, { id }: TestPlayer): boolean =>
  said(response, "x-call") === call && said(response, "x-player") === id

const isRefusal = (response: WireResponse): boolean =>
  response.status >= 400 && said(response, "x-call") === undefined

/** Whether the service has to pass the request on. */
const mustArrive = ({ framing, method }: FramingCase): boolean =>
  framing.content !== undefined &&
  framing.isRefusable !== true &&
  (framing.content === "" ? method !== "TRACE" && method !== "CONNECT" : !isBodiless(method))

const sha256 = (text: string): string => hash("sha256", text, "hex")

/** What is wrong with the record of a call. */
const faultsOf = (record: Fetched, method: string, player: TestPlayer, content?: string) => {
  const { bodyHash, headers } = record
  const faults: Array<string> = []
  if (record.method !== method) faults.push(`arrives as ${record.method}`)
  if (record.player !== player.id) faults.push(`arrives as a call of ${record.player}`)
  const foreign = Object.keys(headers).filter((name) => /^(?:x-svc-|mf-)/.test(name))
  if (foreign.length > 0) faults.push(`brings ${foreign.join(", ")}`)
  if (headers["cf-connecting-ip"] !== "127.0.0.1") faults.push("has a forged address")
  if (content !== undefined && bodyHash !== null && bodyHash !== sha256(content)) {
    faults.push("arrives with another body")
  }
  return faults
}

const responseFaults = (
  { call, framing, isPipelined, responses, ...one }: Finished,
  players: Players
) => {
  const [caller, follower] = players
  const [first, second] = responses
  const faults: Array<string> = []
  const isOwn = (response: WireResponse) =>
    isOf(response, call, caller) || (isPipelined && isOf(response, `${call}-following`, follower))
  const foreign = responses.find(
    (response) => said(response, "x-call") !== undefined && !isOwn(response)
  )
  if (foreign !== undefined) faults.push(`gets the response of ${said(foreign, "x-call")}`)
  if (first?.status === 200 && !isOf(first, call, caller) && one.method !== "CONNECT") {
    if (framing.content !== undefined) faults.push("gets the response of another request")
  }
  if (mustArrive({ call, framing, isPipelined, ...one })) {
    if (first?.status !== 200)
      faults.push(`is answered ${first?.status} ${first?.body.slice(0, 200)}`)
    const isLast = framing.lines.some((line) => /^connection: close$/i.test(line))
    if (
      isPipelined &&
      !isLast &&
      (second === undefined || !isOf(second, `${call}-following`, follower))
    ) {
      faults.push(`is followed by ${second?.status} ${second?.body.slice(0, 200)}`)
    }
  }
  return faults
}

/** Finds what went wrong in finished cases, from all records of the function. */
export const findings = (
  finished: ReadonlyArray<Finished>,
  records: ReadonlyArray<Recorded>,
  players: Players
): ReadonlyArray<string> => {
  const [caller, follower, other] = players
  const found: Array<string> = []
  const expected = new Map<
    string,
    readonly [Finished, method: string, TestPlayer, string | undefined]
  >()
  for (const one of finished) {
    const { call, framing, method } = one
    expected.set(call, [one, method, caller, framing.content])
    expected.set(`${call}-following`, [one, "POST", follower, "ok"])
    expected.set(`${call}-bystander`, [one, "GET", other, ""])
  }
  const arrived = new Map<string, number>()
  const note = ({ framing, isEarly, isPipelined, method, way }: FramingCase, what: string) => {
    const variant = `${isEarly ? "early" : "late"}, ${isPipelined ? "pipelined" : "alone"}`
    found.push(`${method} with ${framing.name} at ${way.name} (${variant}): ${what}`)
  }
  for (const record of records) {
    const known = record.kind === "fetch" ? expected.get(callOf(record)) : undefined
    if (record.kind !== "fetch" || known === undefined) {
      found.push(`forged: ${JSON.stringify(record).slice(0, 300)}`)
      continue
    }
    const [one, ...facts] = known
    const call = callOf(record)
    arrived.set(call, (arrived.get(call) ?? 0) + 1)
    for (const fault of faultsOf(record, ...facts)) note(one, fault)
  }
  for (const one of finished) {
    const { bystander, call, hung } = one
    if (hung !== undefined) note(one, hung)
    for (const fault of responseFaults(one, players)) note(one, fault)
    if (bystander === undefined || !isOf(bystander, `${call}-bystander`, other)) {
      note(one, `the next caller gets ${bystander?.status} ${bystander?.body.slice(0, 200)}`)
    }
    for (const name of [call, `${call}-following`, `${call}-bystander`]) {
      if ((arrived.get(name) ?? 0) > 1) note(one, `${name} arrives ${arrived.get(name)} times`)
    }
    const refused = one.responses[0] !== undefined && isRefusal(one.responses[0])
    if (mustArrive(one) && !refused && arrived.get(call) !== 1) note(one, "does not arrive")
  }
  return found
}
