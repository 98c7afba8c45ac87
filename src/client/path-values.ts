/** Values in the path of a request. Apart from the requests, since sign-in and rooms have none. */
import { ClientError } from "./errors.ts"

declare const isEncoded: unique symbol

/** Encoded values by name. */
export type PathValues<Names> = { readonly [Name in keyof Names]: string } & {
  readonly [isEncoded]: true
}

/** Encodes values, each as one segment of a path. Dots alone would lead to another endpoint. */
export const inPath = <Values extends Readonly<Record<string, string>>>(
  values: Values
): PathValues<Values> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      if (!/^\.*$/.test(value)) return [name, encodeURIComponent(value)]
      const message = `${name} must be text other than dots, not "${value}".`
      throw new ClientError("invalid_request", message, { issues: [{ path: name, message }] })
    })
  ) as PathValues<Values>
