/**
 * Ids of the API: opaque, prefixed, sortable by age. An id is a prefix and 26 characters of Crockford
 * base32: 48 bits of time (milliseconds) and 80 random bits. It cannot be guessed, which matters
 * because the id of a private room is enough to join it.
 */
import { Clock, Effect, Schema } from "effect"
import { SecureRandom } from "effect/crypto"

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
const randomBytes = 10
const timeDigits = 10

const id = (prefix: string, identifier: string, description: string) =>
  Schema.String.check(
    Schema.isPattern(new RegExp(`^${prefix}_[0-9A-HJKMNP-TV-Z]{26}$`), {
      message: `Expected an id of the form ${prefix}_...`
    })
  ).annotate({ identifier, description, examples: [`${prefix}_01KAGVM3T09Q4ZX7RBN2YEF8WC`] })

/** The form of a player's id, of whatever player. */
export const PlayerIdText = id("pl", "PlayerId", "Id of a player.")

export const PlayerId = PlayerIdText.pipe(Schema.brand("PlayerId"))
export type PlayerId = typeof PlayerId.Type

export const RoomId = id("rm", "RoomId", "Id of a room.").pipe(Schema.brand("RoomId"))
export type RoomId = typeof RoomId.Type

export const ProjectId = id("prj", "ProjectId", "Id of a project.").pipe(Schema.brand("ProjectId"))
export type ProjectId = typeof ProjectId.Type

export const EnvironmentId = id("env", "EnvironmentId", "Id of an environment.").pipe(
  Schema.brand("EnvironmentId")
)
export type EnvironmentId = typeof EnvironmentId.Type

export const KeyId = id("key", "KeyId", "Id of an API key.").pipe(Schema.brand("KeyId"))
export type KeyId = typeof KeyId.Type

/** A ban of a player. */
export const SanctionId = id("snc", "SanctionId", "Id of a ban.").pipe(Schema.brand("SanctionId"))
export type SanctionId = typeof SanctionId.Type

/** The appeal against a ban. */
export const AppealId = id("apl", "AppealId", "Id of an appeal.").pipe(Schema.brand("AppealId"))
export type AppealId = typeof AppealId.Type

/** A version of an app's files. */
export const DeploymentId = id("dep", "DeploymentId", "Id of a deployment.").pipe(
  Schema.brand("DeploymentId")
)
export type DeploymentId = typeof DeploymentId.Type

export const DeveloperId = id("dev", "DeveloperId", "Id of a developer.").pipe(
  Schema.brand("DeveloperId")
)
export type DeveloperId = typeof DeveloperId.Type

/** One sign-in of a developer. */
export const DeveloperSessionId = id(
  "dse",
  "DeveloperSessionId",
  "Id of a sign-in of a developer."
).pipe(Schema.brand("DeveloperSessionId"))
export type DeveloperSessionId = typeof DeveloperSessionId.Type

/** One sign-in on one device: a chain of refresh tokens. */
export const SessionId = id("ses", "SessionId", "Id of a sign-in on one device.").pipe(
  Schema.brand("SessionId")
)
export type SessionId = typeof SessionId.Type

/** One realtime connection, on any node. */
export const ConnectionId = id("con", "ConnectionId", "Id of a realtime connection.").pipe(
  Schema.brand("ConnectionId")
)
export type ConnectionId = typeof ConnectionId.Type

/** One running process of the service, new at each start. */
export const NodeId = id("nod", "NodeId", "Id of a process, new at each start.").pipe(
  Schema.brand("NodeId")
)
export type NodeId = typeof NodeId.Type

/** One ticket in a matchmaking queue. */
export const TicketId = id("tkt", "TicketId", "Id of a matchmaking ticket.").pipe(
  Schema.brand("TicketId")
)
export type TicketId = typeof TicketId.Type

/** A mail that the service sends. */
export const MailId = id("mail", "MailId", "Id of a mail.").pipe(Schema.brand("MailId"))
export type MailId = typeof MailId.Type

/** A payment at the payment provider. */
export const CheckoutId = id("chk", "CheckoutId", "Id of a checkout.").pipe(
  Schema.brand("CheckoutId")
)
export type CheckoutId = typeof CheckoutId.Type

/** One transaction of the ledger of prepaid money. */
const LedgerTransactionId = id(
  "ltx",
  "LedgerTransactionId",
  "Id of a transaction of the ledger."
).pipe(Schema.brand("LedgerTransactionId"))

/** One entry of the ledger of prepaid money. */
export const LedgerEntryId = id("led", "LedgerEntryId", "Id of an entry of the ledger.").pipe(
  Schema.brand("LedgerEntryId")
)

/** An invite code of the operator. */
export const InviteId = id("inv", "InviteId", "Id of an invite code.").pipe(
  Schema.brand("InviteId")
)

/** One entry of the audit log. */
const AuditEntryId = id("aud", "AuditEntryId", "Id of an entry of the audit log.").pipe(
  Schema.brand("AuditEntryId")
)

const encodeTime = (millis: number): string => {
  let digits = ""
  let rest = millis
  for (let i = 0; i < timeDigits; i++) {
    digits = alphabet.charAt(rest % 32) + digits
    rest = Math.floor(rest / 32)
  }
  return digits
}

/** Encodes bytes as base32; their bit count must be a multiple of five. */
const encodeBytes = (bytes: Uint8Array): string => {
  let digits = ""
  let bits = 0
  let buffer = 0
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      digits += alphabet.charAt((buffer >>> bits) & 31)
    }
    buffer &= (1 << bits) - 1
  }
  return digits
}

const generate =
  <A>(prefix: string, schema: { readonly make: (input: string) => A }) =>
  (random: SecureRandom.SecureRandom["Service"]): Effect.Effect<A> =>
    Effect.flatMap(Clock.currentTimeMillis, (millis) =>
      Effect.map(random.randomBytes(randomBytes), (bytes) =>
        schema.make(`${prefix}_${encodeTime(millis)}${encodeBytes(bytes)}`)
      )
    )

/** Generators of ids: `yield* newId.room`. */
export const newId = {
  player: Effect.flatMap(SecureRandom.SecureRandom, generate("pl", PlayerId)),
  room: Effect.flatMap(SecureRandom.SecureRandom, generate("rm", RoomId)),
  project: Effect.flatMap(SecureRandom.SecureRandom, generate("prj", ProjectId)),
  environment: Effect.flatMap(SecureRandom.SecureRandom, generate("env", EnvironmentId)),
  key: Effect.flatMap(SecureRandom.SecureRandom, generate("key", KeyId)),
  deployment: Effect.flatMap(SecureRandom.SecureRandom, generate("dep", DeploymentId)),
  developer: Effect.flatMap(SecureRandom.SecureRandom, generate("dev", DeveloperId)),
  developerSession: Effect.flatMap(SecureRandom.SecureRandom, generate("dse", DeveloperSessionId)),
  session: Effect.flatMap(SecureRandom.SecureRandom, generate("ses", SessionId)),
  connection: Effect.flatMap(SecureRandom.SecureRandom, generate("con", ConnectionId)),
  node: Effect.flatMap(SecureRandom.SecureRandom, generate("nod", NodeId)),
  mail: Effect.flatMap(SecureRandom.SecureRandom, generate("mail", MailId)),
  auditEntry: Effect.flatMap(SecureRandom.SecureRandom, generate("aud", AuditEntryId)),
  checkout: Effect.flatMap(SecureRandom.SecureRandom, generate("chk", CheckoutId)),
  ledgerTransaction: Effect.flatMap(
    SecureRandom.SecureRandom,
    generate("ltx", LedgerTransactionId)
  ),
  ledgerEntry: Effect.flatMap(SecureRandom.SecureRandom, generate("led", LedgerEntryId)),
  invite: Effect.flatMap(SecureRandom.SecureRandom, generate("inv", InviteId)),
  sanction: Effect.flatMap(SecureRandom.SecureRandom, generate("snc", SanctionId)),
  appeal: Effect.flatMap(SecureRandom.SecureRandom, generate("apl", AppealId)),
  ticket: Effect.flatMap(SecureRandom.SecureRandom, generate("tkt", TicketId))
}

const lastDigits = 2
const variantCount = alphabet.length ** lastDigits

/** The ids that differ from this one in the last two digits only, beginning with it. */
export function* variantsOf(id: string): Generator<string> {
  const fixed = id.slice(0, -lastDigits)
  const [high = "", low = ""] = id.slice(-lastDigits)
  const first = alphabet.indexOf(high) * alphabet.length + alphabet.indexOf(low)
  for (let i = 0; i < variantCount; i++) {
    const digits = (first + i) % variantCount
    yield fixed + alphabet.charAt(digits >>> 5) + alphabet.charAt(digits & 31)
  }
}

/**
 * Alphabet without vowels and look-alikes: codes never spell words, and people can read them aloud.
 */
const readableAlphabet = "6789BCDFGHJKLMNPQRTW"

/** Generates a code for people to share: of a room or of a session transfer. */
export const readableCode = Effect.fnUntraced(function* (characters: number) {
  const random = yield* SecureRandom.SecureRandom
  let code = ""
  while (code.length < characters) {
    code += readableAlphabet.charAt(yield* random.intBetween(0, readableAlphabet.length - 1))
  }
  return code
})
