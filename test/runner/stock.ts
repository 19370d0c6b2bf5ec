/** Servers of one kind: some are lent, some wait for their next user, and some are on their way from one to the other. */

export interface Server extends AsyncDisposable {
  /** What its user is told. */
  readonly about: unknown;
  /** What its user may have done with it. */
  readonly calls: Readonly<Record<string, () => Promise<void>>>;
  /** Makes it as it was when it was started. */
  readonly restore: () => Promise<void>;
  /** Throws if it is not fit for its next user. */
  readonly check: () => Promise<void>;
}

export interface Stock extends AsyncDisposable {
  readonly take: () => Promise<Server>;
  readonly giveBack: (server: Server) => void;
}

export function createStock(start: () => Promise<Server>): Stock {
  const free: Server[] = [];
  const all = new Set<Server>();
  /** Each resolves when its server is free, or is gone. */
  const restored = new Set<Promise<void>>();
  let isClosed = false;
  const drop = async (server: Server, error: unknown): Promise<void> => {
    console.error(`a server is given up: ${error instanceof Error ? error.stack : String(error)}`);
    all.delete(server);
    await server[Symbol.asyncDispose]();
  };
  const restore = async (server: Server): Promise<void> => {
    try {
      await server.restore();
      free.push(server);
    } catch (error) {
      if (!isClosed) await drop(server, error);
    }
  };
  return {
    take: async () => {
      for (;;) {
        const server = free.pop();
        if (server !== undefined) {
          try {
            await server.check();
            return server;
          } catch (error) {
            await drop(server, error);
          }
        } else if (restored.size > 0) await Promise.race(restored);
        else {
          const made = await start();
          all.add(made);
          return made;
        }
      }
    },
    giveBack: (server) => {
      const done = restore(server).finally(() => restored.delete(done));
      restored.add(done);
    },
    [Symbol.asyncDispose]: async () => {
      isClosed = true;
      await Promise.all([...all].map(async (server) => server[Symbol.asyncDispose]()));
    },
  };
}
