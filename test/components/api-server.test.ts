/** The real API server behaves as the one in the process of tests does. */
import { readFile } from 'node:fs/promises';
import { apiClient, type ApiClient } from '../support/api-client.ts';
import { apiBehavior } from '../cluster/kube/api-behavior.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer } from './support/api-server.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/api-server', { timeoutMs: 120_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();

if (reason === undefined) {
  let client: ApiClient;
  test.before(async () => {
    const box = opened.keep(await tree());
    const server = opened.keep(await startApiServer(box.at('server')));
    client = apiClient(await readFile(server.kubeconfig, 'utf8'));
  });
  test.after(opened.close);
  apiBehavior(test, () => client);
} else test.skip('behavior of the API server', reason);

test.run();
