/** Addresses of runners as text: `host:port`, as in the runner list. */
import { RunnerAddress } from "effect/cluster"

export const formatAddress = ({ host, port }: RunnerAddress.RunnerAddress): string =>
  `${host}:${port}`

/** The inverse of {@link formatAddress}; the host may contain colons. */
export const parseAddress = (text: string): RunnerAddress.RunnerAddress => {
  const colon = text.lastIndexOf(":")
  return RunnerAddress.make(text.slice(0, colon), Number(text.slice(colon + 1)))
}
