/** A client of sign-in and rooms alone: the smallest that a multiplayer game needs. */
import { type ClientOptions, compose, rooms, sessions } from "#client/client"

export const roomsClient = (options: ClientOptions) => compose(options, { sessions, rooms })
