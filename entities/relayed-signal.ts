/**
 * Removal of addresses from WebRTC signals: candidates that are no relays, and the author's address
 * in a session description. So the receiver never learns an address from a signal, even if the
 * sender's client sends one.
 */

const candidateLine = /^[^\S\r\n]*(?:a=)?candidate:[^\r\n]*(?:\r\n|\r|\n|$)/gim
const relayType = /\styp\s+relay(?=\s|$)/i
const otherType = /\styp\s+(?!relay(?:\s|$))/i
const relatedAddress = /\s(raddr|rport)\s+\S+/gi

/** A relay candidate without its related address; any other candidate becomes empty. */
const relayedCandidate = (line: string): string =>
  relayType.test(line) && !otherType.test(line)
    ? line.replace(relatedAddress, (_, name: string) =>
        name.toLowerCase() === "raddr" ? " raddr 0.0.0.0" : " rport 0"
      )
    : ""

/** Lines of a session description (RFC 8866) that contain its author's address. */
const addressLine = /^(o=[^\r\n]*? IN|c=IN|a=rtcp:\d+ IN) IP[46] [^\r\n]*/gim

const isDescription = /^v=\d/m

const relayedText = (text: string): string => {
  const candidates = text.replace(candidateLine, relayedCandidate)
  return isDescription.test(text) ? candidates.replace(addressLine, "$1 IP4 0.0.0.0") : candidates
}

/** Parses a text as JSON, because many games send their candidates as JSON texts. */
const parsed = (text: string): unknown => {
  if (!/^\s*["[{]/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Removes non-relay addresses from all texts; `emptied` if nothing else was in one of them. */
export const relayed = (data: unknown): { readonly data: unknown; readonly emptied: boolean } => {
  let emptied = false
  const walk = (value: unknown): unknown => {
    if (typeof value === "string") {
      const inner = parsed(value)
      if (inner !== undefined) return JSON.stringify(walk(inner))
      const text = relayedText(value)
      emptied ||= text === "" && value !== ""
      return text
    }
    if (Array.isArray(value)) return value.map(walk)
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item)]))
  }
  return { data: walk(data), emptied }
}
