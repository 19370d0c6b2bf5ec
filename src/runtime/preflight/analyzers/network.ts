/** Analyzers of attempts to reach a port: a condition is one of the states. */
import { firstOutcome, type Analyzer } from '../analyzer.ts';
import type { Collector } from '../collector.ts';
import { tcpConnect as connect } from '../collectors/tcp-connect.ts';
import { tcpLoadBalancer as loadBalancer } from '../collectors/tcp-load-balancer.ts';
import { tcpPortStatus as tcpPort } from '../collectors/tcp-port-status.ts';
import { udpPortStatus as udpPort } from '../collectors/udp-port-status.ts';
import type { NetworkFacts } from '../network-status.ts';

function analyzerOf(collector: Collector<NetworkFacts>, title: string): Analyzer<NetworkFacts> {
  return {
    kind: collector.kind,
    collector,
    settings: {},
    title: () => title,
    analyze: firstOutcome((when, { status }) => when === status),
  };
}

export const tcpPortStatus: Analyzer<NetworkFacts> = analyzerOf(tcpPort, 'TCP Port Status');
export const udpPortStatus: Analyzer<NetworkFacts> = analyzerOf(udpPort, 'UDP Port Status');
export const tcpConnect: Analyzer<NetworkFacts> = analyzerOf(connect, 'TCP Connection Attempt');
export const tcpLoadBalancer: Analyzer<NetworkFacts> = analyzerOf(loadBalancer, 'TCP Load Balancer');
