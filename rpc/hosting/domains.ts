/**
 * Custom domains of hosted apps. A domain shows the live version once its DNS has a TXT record with a value
 * that only this environment gets.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { RequiredFeature } from "../auth.ts"
import { DomainNotVerified, NotFound, TooManyDomains, wire } from "../errors/codes.ts"
import { hosting as limits } from "../limits.ts"
import type { MountParams } from "../mounts.ts"
import { Deleted } from "../responses.ts"
import { Timestamp } from "../text.ts"

/** Names of at least two labels, in lower case and without the root's dot. */
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

const DomainList = Schema.Struct({ domains: Schema.Array(CustomDomain) }).annotate({
  identifier: "CustomDomains",
  description: "The domains of the app, oldest first."
})

const feature = "hosting"

/** The endpoints of one mount. */
export const domainEndpoints = <P extends MountParams>(params: P) =>
  [
    HttpApiEndpoint.get("listDomains", "/hosting/domains", {
      params,
      success: DomainList
    }).annotate(OpenApi.Summary, "List the custom domains of the app"),
    HttpApiEndpoint.post("addDomain", "/hosting/domains", {
      params,
      payload: Schema.Struct({ domain: DomainName }),
      success: CustomDomain,
      error: wire(TooManyDomains)
    })
      .annotate(RequiredFeature, feature)
      .annotate(OpenApi.Summary, "Add a custom domain; the response says how to prove it"),
    HttpApiEndpoint.post("verifyDomain", "/hosting/domains/:domain/verify", {
      params: { ...params, domain: Schema.String },
      success: CustomDomain,
      error: [wire(DomainNotVerified), wire(NotFound)]
    })
      .annotate(RequiredFeature, feature)
      .annotate(OpenApi.Summary, "Look for the TXT record of a custom domain, and serve it"),
    HttpApiEndpoint.delete("removeDomain", "/hosting/domains/:domain", {
      params: { ...params, domain: Schema.String },
      success: Deleted,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, `Remove a custom domain; an app has at most ${limits.domainsMax}`)
  ] as const
