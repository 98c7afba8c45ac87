/** Data of signals in tests: candidates, and a number that differs for each signal. */

const ownAddress = "192.0.2.1"
/** A candidate with the sender's own address. */
export const own = `candidate:1 1 udp 2122260223 ${ownAddress} 54400 typ host`
/** A candidate of a relay. */
export const relay = `candidate:2 1 udp 41885439 198.51.100.1 3478 typ relay raddr ${ownAddress} rport 54400`

/** A signal as its receiver knows it. */
export interface Signal {
  readonly n: number
  /** Whether it shows its sender's address. */
  readonly showsAddress: boolean
}

/** Reads the data of a signal. */
export const signalOf = (data: unknown): Signal => ({
  n: Number(Object(data).n),
  showsAddress: JSON.stringify(data).includes(ownAddress)
})
