/**
 * How the nodes that hear an entity are attached to it. The cluster sends a call again when its
 * connection breaks, although it may have been carried out: nothing that comes twice is done twice.
 */
export class Attachments {
  /** The last attachment of each node, and the last call that came through it. */
  readonly #last = new Map<string, { readonly watch: number; call: number }>()

  /** Is this attachment of a node new? What the node held at an earlier one it may not hold now. */
  admits(node: string, watch: number): boolean {
    if ((this.#last.get(node)?.watch ?? 0) >= watch) return false
    this.#last.set(node, { watch, call: 0 })
    return true
  }

  /** Is this the attachment that the node has now? What an earlier one has sent comes too late. */
  isLast(node: string, watch: number): boolean {
    return this.#last.get(node)?.watch === watch
  }

  /** Is this call of an attached node new? Asked again, it is not. */
  takes(node: string, call: number): boolean {
    const last = this.#last.get(node)
    if (last === undefined || last.call >= call) return false
    last.call = call
    return true
  }

  /** The node is gone. */
  delete(node: string): void {
    this.#last.delete(node)
  }
}
