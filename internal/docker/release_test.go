package docker

import "testing"

// TestReleaseLease: a person can end a lease without an endpoint at once. A lease that an endpoint has or may have
// ends only by force, and a lease of a gateway or one taken by hand never. If two spaces have the address, the
// request must name one.
func TestReleaseLease(t *testing.T) {
	playScenarios(t, newScenario, `
		its container is gone:
			run web front
			vanish web
			wait 1m
			end 10.8.0.2
			at 10.8.0.2 -> remembered - 1 front
		a container has it:
			run web front
			wait 1m
			end 10.8.0.2 ! the container web has 10.8.0.2 on the Docker network front; stop it
			end 10.8.0.2 force
			at 10.8.0.2 -> remembered - 1 front
		its container may be starting:
			run web front
			vanish web
			wait 14s
			end 10.8.0.2 ! Berth gave out 10.8.0.2 14s before it read the engine, and the container may be starting; try again in 1s
			end 10.8.0.2 force
			at 10.8.0.2 -> remembered - 1 front
		the engine is away:
			run web front
			wait 1m
			stop
			end 10.8.0.2 ! Berth cannot tell whether an endpoint has 10.8.0.2
			end 10.8.0.2 force
			at 10.8.0.2 -> remembered - 1 front
		nobody has it:
			end 10.8.0.7 ! nobody holds 10.8.0.7
			end 10.8.0.7 force ! nobody holds 10.8.0.7
		a gateway:
			end 10.8.0.1 ! 10.8.0.1 is a gateway
			end 10.8.0.1 force ! 10.8.0.1 is a gateway
		taken by hand:
			take rtr 10.8.0.9
			wait 1m
			end 10.8.0.9 ! was taken for rtr by hand
			end 10.8.0.9 force ! was taken for rtr by hand
		of two spaces:
			run web front
			elsewhere lab 10.8.0.2
			wait 1m
			end 10.8.0.2 ! --space
			end 10.8.0.2 kindly lab -> lab
	`)
}
