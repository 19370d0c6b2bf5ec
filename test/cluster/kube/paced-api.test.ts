import type { KubeApi } from '../../../src/cluster/kube/api.ts';
import { pacedApi } from '../../../src/cluster/kube/paced-api.ts';
import { apiPath } from '../../../src/cluster/kube/path.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/kube/paced-api');

test('a burst of requests does not wait, and those after it come at the pace', async () => {
  let sent = 0;
  const api = {
    ask: async () => {
      sent += 1;
      return { kind: 'answer', value: {}, bytes: 2 };
    },
  } as Partial<KubeApi> as KubeApi;
  const paced = pacedApi(api, { perSecond: 0.001, burst: 3 });
  const ended = new AbortController();
  const asked = Array.from({ length: 5 }, async () =>
    paced.ask({ verb: 'get', path: apiPath`/version` }, { signal: ended.signal }),
  );
  await Promise.all(asked.slice(0, 3));
  assert.is(sent, 3);
  ended.abort(new Error('stopped'));
  const rest = await Promise.allSettled(asked.slice(3));
  assert.equal([rest.map(({ status }) => status), sent], [['rejected', 'rejected'], 3]);
});

test.run();
