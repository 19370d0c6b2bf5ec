/** The script that Node runs in the executable for nodes. Each start compiles only the chunks that its command needs. */
import { getAsset } from 'node:sea';
import { chunkLoader } from './load-chunks.ts';

chunkLoader((name) => getAsset(name, 'utf8'), require)('./main.js');
