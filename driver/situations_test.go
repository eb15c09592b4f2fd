//go:build record

package driver

import "strings"

// situations returns the recorded situations. A text has "# NAME: ABOUT" and the commands of each.
func situations() (all []situation) {
	text := plainSituations
	if *recordSwarm {
		text = swarmSituations
	} else if *recordRestart != "" {
		text = restartSituations
	}
	for _, one := range strings.Split(text, "# ")[1:] {
		head, script, _ := strings.Cut(one, "\n")
		name, about, _ := strings.Cut(head, ": ")
		all = append(all, situation{name, about, strings.NewReplacer("$PLAN", plan, "$ONE", onePool).Replace(script)})
	}
	return all
}

// plan has a network with an IPv6 subnet and two IPv4 subnets, the first with two pools and an exclusion.
const plan = `+network.create {"name":"front","subnets":[{"cidr":"10.91.8.0/24","gateway":"10.91.8.254"},{"cidr":"10.91.9.0/24","gateway":"10.91.9.1","pool":true},{"cidr":"fd91:8::/64","gateway":"fd91:8::1","pool":true}]}
	+pool.add {"network":"front","range":"10.91.8.10-10.91.8.12","name":"web"}
	+pool.add {"network":"front","range":"10.91.8.20-10.91.8.29","name":"rest"}
	+exclusion.add {"network":"front","range":"10.91.8.11","note":"printer"}
`

const onePool = "network create -d bridge --ipam-driver $D --subnet 10.91.7.0/24 --gateway 10.91.7.1 $N"

const plainSituations = `
	# handshake: The engine meets the plugin; a network without a subnet.
		network create -d bridge --ipam-driver $D $N
		network rm $N
	# create-full: A subnet, a range, a gateway outside of it, two auxiliary addresses, options.
		network create -d bridge --ipam-driver $D --subnet 10.91.1.0/24 --ip-range 10.91.1.128/25 --gateway 10.91.1.9 --aux-address a=10.91.1.200 --aux-address b=10.91.1.5 --ipam-opt tag.foo=bar $N
		network rm $N
	# unknown-option: An option that Berth does not know.
		!network create -d bridge --ipam-driver $D --subnet 10.91.1.0/24 --ipam-opt foo=bar $N
	# dual-stack: Two families, both subnets given.
		network create -d bridge --ipam-driver $D --ipv6 --subnet 10.91.2.0/24 --subnet fd91:2::/64 $N
		create --name $N-c --network $N $I /pause
		start $N-c
		rm -f $N-c
		network rm $N
	# dual-stack-auto: Two families, the subnet of one given.
		network create -d bridge --ipam-driver $D --ipv6 --subnet 10.91.2.0/24 $N
		network rm $N
	# container: A container's life: create, start, restart, stop, rename, start, kill, rm -f.
		$ONE
		create --name $N-c --network $N $I /pause
		start $N-c
		restart -t 1 $N-c
		stop -t 1 $N-c
		rename $N-c $N-d
		start $N-d
		kill $N-d
		wait $N-d
		start $N-d
		rm -f $N-d
		network rm $N
	# connect: Connect and disconnect.
		$ONE
		run -d --name $N-c --network none $I /pause
		!network connect $N $N-c
		rm -f $N-c
		run -d --name $N-c $I /pause
		network connect $N $N-c
		network disconnect $N $N-c
		network connect --ip 10.91.7.77 $N $N-c
		rm -f $N-c
		network rm $N
	# restart-policy: A container that fails and is started again by its policy.
		$ONE
		run -d --name $N-c --network $N --restart on-failure:2 $I /pause fail
		%4s
		rm -f $N-c
		network rm $N
	# explicit: An address by --ip, and a second container that wants the same.
		$ONE
		run -d --name $N-c --network $N --ip 10.91.7.77 $I /pause
		!run -d --name $N-d --network $N --ip 10.91.7.77 $I /pause
		rm -f $N-d
		!run -d --name $N-e --network $N --ip 10.91.7.255 $I /pause
		rm -f $N-e $N-c
		network rm $N
	# mac: A MAC by the engine's own interface: stopped, another one comes, started again.
		$ONE
		curl /v1.41/containers/create?name=$N-c {"Image":"$I","Cmd":["/pause"],"MacAddress":"02:42:0a:5b:07:99","HostConfig":{"NetworkMode":"$N"}}
		start $N-c
		stop -t 1 $N-c
		run -d --name $N-d --network $N $I /pause
		start $N-c
		rm -f $N-c $N-d
		network rm $N
	# prune: A network removed by prune.
		network create --label $N -d bridge --ipam-driver $D --subnet 10.91.7.0/24 $N
		network prune -f --filter label=$N
	# gateway-refused: A gateway that is refused: the pool goes back at once.
		!network create -d bridge --ipam-driver $D --subnet 10.91.3.0/24 --gateway 10.91.3.255 $N
	# aux-refused: An auxiliary address that is refused.
		!network create -d bridge --ipam-driver $D --subnet 10.91.3.0/24 --aux-address a=10.91.3.0 $N
	# v6-refused: Two families, of which the second one's pool is refused: this engine gives the first one back.
		!network create -d bridge --ipam-driver $D --ipv6 --subnet 10.91.3.0/24 --subnet fd91:3::/0 $N
	# gateway-option: A gateway as an option: it is not asked for, but released.
		network create -d bridge --ipam-driver $D --subnet 10.91.3.0/24 --ipam-opt gateway=10.91.3.7 $N
		network rm $N
	# gateway-none: A network without a gateway, of which the engine wants one all the same.
		network create -d bridge --ipam-driver $D --subnet 10.91.3.0/24 --ipam-opt gateway=none $N
		network rm $N
	# host-bits: A subnet and a range with host bits.
		network create -d bridge --ipam-driver $D --subnet 10.91.3.9/24 --ip-range 10.91.3.130/25 $N
		network rm $N
	# two-subnets: Two subnets of one family.
		!network create -d bridge --ipam-driver $D --subnet 10.91.3.0/24 --subnet 10.91.4.0/24 $N
	# v6-gateway-refused: Two families, of which the second one's gateway is refused.
		!network create -d bridge --ipam-driver $D --ipv6 --subnet 10.91.3.0/24 --subnet fd91:3::/64 --gateway fd91:3:: $N
	# planned: A planned network: the option alone chooses subnet and gateway.
		$PLAN
		network create -d bridge --ipam-driver $D --ipam-opt network=front $N
		run -d --name $N-c --network $N $I /pause
		rm -f $N-c
		network rm $N
		network create -d bridge --ipam-driver $D --ipam-opt network=front $N
		network rm $N
	# planned-pool: A pool by name until it is full: it never goes on to the next one.
		$PLAN
		network create -d bridge --ipam-driver $D --ipam-opt network=front --ipam-opt pool=web $N
		run -d --name $N-c --network $N $I /pause
		run -d --name $N-d --network $N $I /pause
		!run -d --name $N-e --network $N $I /pause
		rm -f $N-c $N-d $N-e
		network rm $N
	# planned-subnet: One of a planned network's subnets, by --subnet, with an address that is asked for.
		$PLAN
		network create -d bridge --ipam-driver $D --subnet 10.91.9.0/24 --ipam-opt network=front $N
		run -d --name $N-c --network $N --ip 10.91.9.77 $I /pause
		rm -f $N-c
		network rm $N
	# planned-dual-stack: A planned network of both families.
		$PLAN
		network create -d bridge --ipam-driver $D --ipv6 --ipam-opt network=front $N
		run -d --name $N-c --network $N $I /pause
		rm -f $N-c
		network rm $N
	# planned-refused: A planned network that is not there, one without a subnet, a pool and a subnet that are not there.
		$PLAN
		+network.create {"name":"flat"}
		!network create -d bridge --ipam-driver $D --ipam-opt network=back $N
		!network create -d bridge --ipam-driver $D --ipam-opt network=flat $N
		!network create -d bridge --ipam-driver $D --ipam-opt network=front --ipam-opt pool=db $N
		!network create -d bridge --ipam-driver $D --subnet 10.91.10.0/24 --ipam-opt network=front $N
		!network create -d bridge --ipam-driver $D --ipam-opt network=front --ipam-opt size=26 $N
	# config-only: A network that is a configuration only: no call at all.
		network create --config-only --ipam-driver $D --subnet 10.91.3.0/24 $N
		network rm $N
`

const restartSituations = `
	# engine-stopped: The engine stops in order and starts, with a container that runs.
		$ONE
		run -d --name $N-c --restart always --network $N $I /pause
		@stop
		@start
		rm -f $N-c
		network rm $N
	# engine-killed: The engine is killed and started, with a container that runs.
		$ONE
		run -d --name $N-c --restart always --network $N $I /pause
		@kill
		@start
		rm -f $N-c
		network rm $N
	# live-restore: The engine is killed and started with live-restore: the containers run on.
		$ONE
		run -d --name $N-c --network $N $I /pause
		@live
		@kill
		@startlive
		rm -f $N-c
		network rm $N
`

const swarmSituations = `
	# swarm-network: An overlay network of a swarm: the manager asks in the global space, the node in the local one.
		network create -d overlay --attachable --ipam-driver $D --subnet 10.91.5.0/24 $N
		run -d --name $N-c --network $N $I /pause
		rm -f $N-c
		service create -d --name $N-s --network $N --replicas 2 $I /pause
		@settle $N-s 2
		service rm $N-s
		@gone $N
		network rm $N
		@settle
	# swarm-two-subnets: A swarm network of two subnets: the second request has options of the first one's gateway.
		network create -d overlay --ipam-driver $D --subnet 10.91.5.0/24 --subnet 10.91.6.0/24 $N
		network rm $N
		@settle
	# swarm-same-ip: Two containers that want one address of an attachable network.
		network create -d overlay --attachable --ipam-driver $D --subnet 10.91.5.0/24 $N
		run -d --name $N-c --network $N --ip 10.91.5.77 $I /pause
		!run -d --name $N-d --network $N --ip 10.91.5.77 $I /pause
		rm -f $N-c $N-d
	# swarm-restart: A manager that is killed asks for all its pools and addresses again.
		network create -d overlay --attachable --ipam-driver $D --subnet 10.91.5.0/24 $N
		service create -d --name $N-s --network $N --replicas 2 $I /pause
		@settle $N-s 2
		@kill
		@start
		@settle $N-s 2
		service rm $N-s
		@gone $N
		network rm $N
		@settle
`
