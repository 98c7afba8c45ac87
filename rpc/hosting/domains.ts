/**
 * Custom domains of hosted apps. A domain shows the live version once its DNS has a TXT record with a value
 * that only this environment gets.
 */
import { Schema } from "effect"
import { Timestamp } from "../text.ts"

/** Domain names of at least two labels, in lower case and without the root's dot. */
const domainForm =
  /^(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/

export const DomainName = Schema.String.check(
  Schema.isPattern(domainForm, {
    message:
      "Expected a domain in lower case, such as play.example.com; write other scripts in Punycode (xn--)"
  })
)

/** The TXT record that proves a domain. */
const DomainRecord = Schema.Struct({
  type: Schema.Literal("TXT"),
  name: Schema.String,
  value: Schema.String
}).annotate({ identifier: "DomainRecord", description: "The DNS record that proves a domain." })

/** A custom domain. It is served once it is verified; `url` is its address. Timestamps are ISO 8601 UTC. */
export const CustomDomain = Schema.Struct({
  domain: Schema.String,
  status: Schema.Literals(["pending", "verified"]),
  url: Schema.String,
  record: DomainRecord,
  createdAt: Timestamp,
  verifiedAt: Schema.NullOr(Timestamp)
}).annotate({
  identifier: "CustomDomain",
  description: "A domain of your own. It shows the live version once it is verified."
})
export type CustomDomain = typeof CustomDomain.Type

export const DomainList = Schema.Struct({ domains: Schema.Array(CustomDomain) }).annotate({
  identifier: "CustomDomains",
  description: "The domains of the app, oldest first."
})
