package ipam

import "context"

// Note writes the event of a change that was made beside the store. Its id and time, host and actor are filled in.
func (s *Service) Note(ctx context.Context, e Event) error {
	return s.update(ctx, func(c *change) error {
		noted := e // the function may run again
		_, err := c.event(&noted)
		return err
	})
}
