/** Error codes of hosted apps and their domains. */
import { Schema } from "effect"
import { detailed } from "./wire.ts"

/** A deployment lacks uploaded files. Upload those in `missing` and retry. */
export class BlobsMissing extends detailed<BlobsMissing>()(
  "blobs_missing",
  409,
  "Some files of the deployment have not been uploaded.",
  { missing: Schema.Array(Schema.String) }
) {}

/**
 * The domain's DNS has no TXT record with the value. Add the record, wait until your DNS provider has
 * published it, and retry. `found` are the values that its DNS has.
 */
export class DomainNotVerified extends detailed<DomainNotVerified>()(
  "domain_not_verified",
  409,
  "The TXT record of the domain was not found. Add it, wait some minutes, and retry.",
  { name: Schema.String, value: Schema.String, found: Schema.Array(Schema.String) }
) {}

/** The app has the most domains that it may have. Remove one first. */
export class TooManyDomains extends detailed<TooManyDomains>()(
  "too_many_domains",
  409,
  "The app has as many domains as it may have. Remove one first.",
  { limit: Schema.Int }
) {}

/** The uploaded bytes do not have the SHA-256 of the path, or not the size of the manifest. Upload the file again. */
export class BlobHashMismatch extends detailed<BlobHashMismatch>()(
  "blob_hash_mismatch",
  400,
  "The uploaded bytes are not those that the deployment names.",
  { expectedBytes: Schema.Finite, receivedBytes: Schema.Finite }
) {}
