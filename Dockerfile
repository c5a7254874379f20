# How to build and run this image: docs/deploy.md
ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
# Without install scripts: they fetch a Node and a PostgreSQL for the tests.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN node scripts/build.ts

FROM ${NODE_IMAGE}
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates git openssh-client tini \
 && rm -rf /var/lib/apt/lists/*

# Agents to include, as npm packages: --build-arg AGENTS="@anthropic-ai/claude-code @openai/codex"
ARG AGENTS=""
RUN if [ -n "$AGENTS" ]; then npm install --global --no-audit --no-fund $AGENTS && npm cache clean --force; fi

# The author of commits, unless /home/node/.gitconfig names another.
RUN git config --system user.name Coppice && git config --system user.email coppice@localhost

# dist is a bundle and needs no node_modules.
COPY --from=build /build/package.json /opt/coppice/package.json
COPY --from=build /build/bin /opt/coppice/bin
COPY --from=build /build/dist /opt/coppice/dist
COPY --from=build /build/deploy /opt/coppice/deploy
RUN ln -s /opt/coppice/bin/coppice.js /usr/local/bin/coppice \
 && install -d -o node -g node -m 0700 /.coppice

USER node
ENV COPPICE_HOME=/.coppice HOME=/home/node
WORKDIR /home/node
# /.coppice: the database, clones, worktrees and restore points. /home/node: agents' logins, ssh keys, .gitconfig.
VOLUME ["/.coppice", "/home/node"]
EXPOSE 4780
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
  CMD ["/opt/coppice/deploy/healthcheck.js"]
ENTRYPOINT ["/opt/coppice/deploy/container-entry.js"]
# On every address of the container, since a published port arrives there. What is published decides who can connect.
CMD ["serve", "--host", "0.0.0.0", "--allow-remote"]
