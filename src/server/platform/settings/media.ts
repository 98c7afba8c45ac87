/** Settings of media: the media server of voice calls, and STUN and TURN servers. */
import { type Redacted, Schema } from "effect"
import { IpAddress, listOf, Ports, TurnSecret, TurnUrl, whole } from "./values.ts"

export interface MediaSettings {
  /** The media server of voice calls: its UDP ports, one per process; without one there is none. */
  readonly voice: {
    readonly ports: ReadonlyArray<number>
    readonly publicIp: string | undefined
  }
  /** STUN and TURN servers, and the secret shared with the TURN ones. */
  readonly turn: {
    readonly urls: ReadonlyArray<string>
    readonly secret: Redacted.Redacted | undefined
    readonly port: number
  }
}

export const mediaVariables = {
  SVC_TURN_URLS: listOf(TurnUrl),
  SVC_TURN_PORT: whole(0, 65_535),
  SVC_TURN_SECRET: Schema.optionalKey(Schema.RedactedFromValue(TurnSecret)),
  SVC_VOICE_UDP_PORTS: Ports,
  SVC_VOICE_PUBLIC_IP: Schema.optionalKey(IpAddress)
}

const Variables = Schema.Struct(mediaVariables)
type Variables = typeof Variables.Type

export const mediaOf = (env: Variables): MediaSettings => ({
  turn: { urls: env.SVC_TURN_URLS, secret: env.SVC_TURN_SECRET, port: env.SVC_TURN_PORT },
  voice: { ports: env.SVC_VOICE_UDP_PORTS, publicIp: env.SVC_VOICE_PUBLIC_IP }
})

/** Returns what is missing for TURN servers, or undefined. */
export const mediaIssue = (env: Variables) =>
  env.SVC_TURN_SECRET === undefined && env.SVC_TURN_URLS.some((url) => /^turn/i.test(url))
    ? { path: ["SVC_TURN_SECRET"], issue: "must be set together with a turn: URL" }
    : undefined
