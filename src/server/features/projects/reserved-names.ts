/** Reserved project names: names that impersonate the service or its staff. */

/** Words for the service itself; no name may begin with one or contain one as a word. */
const service = ["svc", "playerbackend"]

/** Words for the service's staff; a name may not consist of such words alone. */
const staff: ReadonlySet<string> = new Set(
  (
    "admin administrator billing help helpdesk mod moderation moderator official root security " +
    "service staff support system team the"
  ).split(" ")
)

/** Look-alikes by letter: digits, symbols, Cyrillic and Greek letters. */
const lookalikes: Readonly<Record<string, string>> = {
  a: "4@\u0430\u03b1",
  b: "8\u044c\u03b2",
  c: "\u0441\u03f2",
  d: "\u0501",
  e: "3\u0435\u03b5",
  g: "\u050d\u0261",
  h: "\u04bb",
  i: "1|\u0456\u03b9\u0131",
  j: "\u0458",
  k: "\u043a\u03ba",
  l: "\u04cf",
  m: "\u043c",
  n: "\u0578",
  o: "0\u043e\u03bf\u0585",
  p: "\u0440\u03c1",
  r: "\u0433",
  s: "5$\u0455",
  t: "7\u0442\u03c4",
  u: "\u03c5\u057d",
  v: "\u0475\u03bd",
  w: "\u051d\u0461",
  x: "\u0445\u03c7",
  y: "\u0443\u04af\u03b3"
}

const letterOf: ReadonlyMap<string, string> = new Map(
  Object.entries(lookalikes).flatMap(([letter, signs]) =>
    [...signs].map((sign) => [sign, letter] as const)
  )
)

/**
 * Whether a name impersonates the service or its staff. Detects accents, spaces and look-alikes, too.
 */
export const isReservedName = (name: string): boolean => {
  const plain = name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[\p{M}\p{Cf}]/gu, "")
    .replace(/./gu, (sign) => letterOf.get(sign) ?? sign)
  const words = plain.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "")
  if (words.length === 0) return false
  const joined = words.join("")
  const own = words.filter((word) => !staff.has(word)).join("")
  if (own === "" || staff.has(joined)) return true
  return service.some((word) => own.startsWith(word) || words.includes(word))
}

/** Host names that visitors, browsers or mail servers take for the service's own. */
const hosts: ReadonlySet<string> = new Set(
  (
    "account accounts api app apps auth autoconfig autodiscover blog cdn console dashboard dev docs " +
    "email ftp imap login mail mta-sts ns1 ns2 oauth pop smtp static status webmail wpad www"
  ).split(" ")
)

/** Whether a slug would be such a host name below the hosting domain. */
export const isReservedSlug = (slug: string): boolean => hosts.has(slug)
