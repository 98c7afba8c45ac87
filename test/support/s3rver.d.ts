/** Types of the S3-compatible store for tests, which has none. */
declare module "@20minutes/s3rver" {
  import type { RequestListener } from "node:http"

  export default class S3rver {
    constructor(options: {
      readonly directory: string
      readonly silent: boolean
      readonly vhostBuckets: boolean
      readonly configureBuckets: ReadonlyArray<{
        readonly name: string
        readonly configs: ReadonlyArray<string>
      }>
    })
    configureBuckets(): Promise<unknown>
    callback(): RequestListener
  }
}
