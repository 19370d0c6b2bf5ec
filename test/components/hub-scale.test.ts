/** What a controller writes on a real API server, and how much memory it needs: the small share of `npm run bench -- --only fleet`. */
import { measureHub } from '../bench/hub.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS } from './support/api-server.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/hub-scale', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const TITLE = 'an idle controller writes nothing, one changed add-on only its own objects, and memory stays small';

if (reason === undefined) {
  test(TITLE, async () => {
    await using box = await tree();
    const { firstPass, ...counts } = await measureHub(box.at('server'), { clusters: 10, addons: 4, idleMs: 3000 });
    assert.ok(firstPass > 0);
    assert.equal({ ...counts, megabytes: 0 }, { idleWrites: 0, changed: 10, megabytes: 0 });
    assert.ok(counts.megabytes <= 150, `${counts.megabytes} MB`);
  });
} else test.skip(TITLE, reason);

test.run();
